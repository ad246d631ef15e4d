// Agreement: how near peers are to each other where each has weights of its own.
//
// Thread: plain functions. All spans of one length.
#pragma once

#include <span>
#include <vector>

namespace rumor::sim {

using Models = std::span<const std::span<const float>>;

// The distance of peers from their mean over the distance of the mean from the start: root mean square over peers. 0
// when the mean has not moved. Requires: there is a peer.
double disagreement(Models models, std::span<const float> start);

// The mean of each weight over peers. Requires: there is a peer.
std::vector<float> mean_of(Models models);

}  // namespace rumor::sim
