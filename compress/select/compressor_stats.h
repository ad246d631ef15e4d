// The figures of Compressor::stats(), for every compressor that ranks with RankGroup: on this processor, or on a GPU.
//
// Thread: plain function.
#pragma once

#include <cstdint>
#include <span>

#include "compress/select/compressor.h"
#include "compress/select/rank_group.h"
#include "runtime/base/param_layout.h"

namespace rumor::compress {

// Figures of the last update (`sent_by_tensor`: its entries) and of the residual it left. Passes over all parameters.
// Requires: a group for all parameters (Scope::global) or one for each tensor; residual.size() == layout.params().
CompressorStats compressor_stats(const ParamLayout& layout, Scope scope, std::span<const RankGroup> groups,
                                 std::span<const std::uint32_t> sent_by_tensor, std::span<const float> residual);

}  // namespace rumor::compress
