#include "models/kernels/area_mean.h"

#include <algorithm>

#include "models/kernels/kernels.h"
#include "runtime/base/check.h"

namespace rumor::models {

AreaMean::AreaMean(std::uint32_t from, std::uint32_t to) : from_(from), to_(to) {
  constexpr std::uint32_t side_max = 1u << 16;  // ends of pixels are counted in 64 bits
  RUMOR_CHECK(from >= 1 && from <= side_max);
  RUMOR_CHECK(to >= 1 && to <= side_max);
  const std::size_t old_side = from, new_side = to;
  weight_.assign(old_side * new_side, 0.0f);
  turned_.assign(old_side * new_side, 0.0f);
  for (std::uint64_t i = 0; i < new_side; ++i) {
    for (std::uint64_t j = i * old_side / new_side; j < old_side && j * new_side < (i + 1) * old_side; ++j) {
      const std::uint64_t begin = std::max(i * old_side, j * new_side);
      const std::uint64_t end = std::min((i + 1) * old_side, (j + 1) * new_side);
      weight_[i * old_side + j] = static_cast<float>(end - begin) / static_cast<float>(old_side);
      turned_[j * new_side + i] = weight_[i * old_side + j];
    }
  }
}

void AreaMean::planes(std::size_t count, const float* x, float* y, LargeVector<float>& scratch) const {
  const long old_side = from_, new_side = to_;
  scratch.resize(std::size_t{to_} * from_);
  for (std::size_t plane = 0; plane < count; ++plane) {
    kernels().matmul(new_side, old_side, old_side, {weight_.data(), old_side, 1}, x, old_side, scratch.data(), old_side,
                     Start::zero);
    kernels().matmul(new_side, new_side, old_side, {scratch.data(), old_side, 1}, turned_.data(), new_side, y, new_side,
                     Start::zero);
    x += old_side * old_side;
    y += new_side * new_side;
  }
}

void AreaMean::map(std::uint32_t channels, const float* x, float* y, LargeVector<float>& scratch) const {
  const long old_side = from_, new_side = to_, wide = channels, line = old_side * wide;
  scratch.resize(std::size_t{to_} * from_ * channels);
  kernels().matmul(new_side, line, old_side, {weight_.data(), old_side, 1}, x, line, scratch.data(), line, Start::zero);
  for (long row = 0; row < new_side; ++row)
    kernels().matmul(new_side, wide, old_side, {weight_.data(), old_side, 1}, scratch.data() + row * line, wide,
                     y + row * new_side * wide, wide, Start::zero);
}

void AreaMean::map_backward(std::uint32_t channels, const float* change_y, float* change_x,
                            LargeVector<float>& scratch) const {
  const long old_side = from_, new_side = to_, wide = channels, line = old_side * wide;
  scratch.resize(std::size_t{to_} * from_ * channels);
  for (long row = 0; row < new_side; ++row)
    kernels().matmul(old_side, wide, new_side, {turned_.data(), new_side, 1}, change_y + row * new_side * wide, wide,
                     scratch.data() + row * line, wide, Start::zero);
  kernels().matmul(old_side, line, new_side, {turned_.data(), new_side, 1}, scratch.data(), line, change_x, line,
                   Start::zero);
}

}  // namespace rumor::models
