// The hidden matrices of a model that Muon takes together on a GPU (gpu/optimizers/newton_schulz.h): those of one
// layout at equal distances. In a GPT these are all query projections, all key projections and so on, one a layer.
//
// Thread: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device/table.h"
#include "models/optimizers/hidden_matrices.h"

namespace rumor::gpu {

struct PlacedGroup {
  std::uint32_t offset;  // of the first matrix among all parameters
  MatrixGroup group;
};

// DeviceNewtonSchulz takes no more memory for a group, unless it is a single matrix.
inline constexpr std::size_t group_bytes_max = std::size_t{256} << 20;

// Each matrix in one group. A row of matrices that would take more than `bytes_max` becomes several groups of about one
// size.
std::vector<PlacedGroup> groups_of(std::span<const models::HiddenMatrix> matrices, Precision precision,
                                   std::size_t bytes_max = group_bytes_max);

}  // namespace rumor::gpu
