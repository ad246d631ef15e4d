// Random layouts and updates from a seed, for the tests of compress.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "compress/payload/update.h"
#include "runtime/base/prng.h"
#include "runtime/base/text.h"

namespace rumor::compress {

inline ParamLayout layout_of(const std::vector<std::uint32_t>& sizes) {
  std::vector<TensorInfo> tensors;
  for (const std::uint32_t size : sizes)
    tensors.push_back({.name = str("t", tensors.size()), .shape = {size}});
  return ParamLayout::create(std::move(tensors)).value();
}

// The MLP 784-128-128-10, the model whose updates are smallest.
inline ParamLayout mlp_layout() {
  return layout_of({100352, 128, 16384, 128, 1280, 10});
}

// One to `tensors_max` tensors, many of them tiny.
inline ParamLayout random_layout(Prng& prng, std::uint32_t tensors_max, std::uint32_t size_max) {
  std::vector<std::uint32_t> sizes(1 + prng.below(tensors_max));
  for (std::uint32_t& size : sizes) {
    const std::uint32_t bound = prng.chance(1, 2) ? 4 : size_max;
    size = static_cast<std::uint32_t>(1 + prng.below(bound));
  }
  return layout_of(sizes);
}

// `count` distinct positions drawn evenly from the whole vector (Floyd's method), random signs.
inline SparseUpdate random_update(Prng& prng, std::uint32_t params, std::uint32_t count, std::int32_t step) {
  SparseUpdate update;
  if (count == 0) return update;
  std::vector<bool> taken(params, false);
  for (std::uint32_t top = params - count; top < params; ++top) {
    const std::uint32_t draw = static_cast<std::uint32_t>(prng.below(top + 1));
    const std::uint32_t position = taken[draw] ? top : draw;
    taken[position] = true;
    update.index.push_back(position);
  }
  std::sort(update.index.begin(), update.index.end());
  update.step = step;
  for (std::uint32_t e = 0; e < count; ++e) update.negative.push_back(static_cast<std::uint8_t>(prng.below(2)));
  return update;
}

// Any number of entries, with the ends of the range more often than chance has them.
inline SparseUpdate any_update(Prng& prng, const ParamLayout& layout) {
  const std::uint32_t params = layout.params();
  std::uint32_t count = static_cast<std::uint32_t>(prng.below(std::uint64_t{params} + 1));
  if (prng.chance(1, 4)) count = static_cast<std::uint32_t>(prng.below(2));
  if (prng.chance(1, 2)) count /= 32;
  if (prng.chance(1, 10)) count = params;
  const unsigned width = static_cast<unsigned>(1 + prng.below(31));
  const std::uint64_t lead = std::uint64_t{1} << (width - 1);
  return random_update(prng, params, count, static_cast<std::int32_t>(lead | prng.below(lead)));
}

// A step for each tensor instead of one for all, where two tensors or more have entries.
inline void give_own_steps(Prng& prng, const ParamLayout& layout, SparseUpdate& update) {
  if (update.index.empty()) return;
  update.tensor_step.assign(layout.tensors().size(), 0);
  std::size_t t = 0;
  for (const std::uint32_t position : update.index) {
    while (position - layout.tensors()[t].offset >= layout.tensors()[t].size) ++t;
    if (update.tensor_step[t] == 0)
      update.tensor_step[t] = static_cast<std::int32_t>(1 + prng.below(1 + prng.below(0x7fff'ffff)));
  }
  update.step = 0;
  normalize_steps(update);
}

// Whole segments' worth of entries do not fit random_layout(): one to three large tensors among small ones.
inline ParamLayout large_layout(Prng& prng) {
  std::vector<std::uint32_t> sizes(1 + prng.below(5));
  for (std::uint32_t& size : sizes)
    size = static_cast<std::uint32_t>(1 + prng.below(prng.chance(1, 2) ? 40 : 90'000));
  sizes.back() = 50'000;
  return layout_of(sizes);
}

}  // namespace rumor::compress
