// The number of blocks of a kernel.
#pragma once

#include <cstdint>

namespace rumor::gpu {
namespace slots {

// Blocks of a kernel that loops in strides of its grid: enough to fill every GPU, few enough to begin quickly.
constexpr std::uint64_t stride_blocks_max = 2048;

inline std::uint64_t blocks_of(std::uint64_t items, unsigned each) {
  return items / each + (items % each != 0 ? 1 : 0);
}

inline std::uint64_t stride_blocks(std::uint64_t items, unsigned threads) {
  const std::uint64_t blocks = blocks_of(items, threads);
  return blocks < stride_blocks_max ? blocks : stride_blocks_max;
}

}  // namespace slots
}  // namespace rumor::gpu
