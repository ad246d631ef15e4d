// How near peers are to each other where each has weights of its own.
//
// Thread: plain functions. All spans of one length.
#pragma once

#include <span>
#include <vector>

namespace rumor::sim {

using Models = std::span<const std::span<const float>>;

// How far peers are from their mean, over how far the mean has come from the start: root mean square over peers. 0
// where it has not moved. Requires: there is one.
double disagreement(Models models, std::span<const float> start);

// Of each weight the mean over peers. Requires: there is one.
std::vector<float> mean_of(Models models);

}  // namespace rumor::sim
