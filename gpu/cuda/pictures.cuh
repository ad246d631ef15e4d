// Windows, pooling and other moves between pictures (gpu/device/picture_table.h). Each thread writes its own values and
// reads what it needs in one order, so no two threads add to one value.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/device/picture_table.h"

namespace rumor::gpu {

constexpr unsigned picture_threads = 256;

__global__ void __launch_bounds__(picture_threads)
    turn_matrices(std::uint64_t count, Matrix size, const float* x, float* y) {
  const std::uint64_t each = std::uint64_t{size.rows} * size.columns;
  for (std::uint64_t i = grid_thread(); i < count * each; i += grid_threads()) {
    const std::uint64_t begin = i / each * each, at = i - begin;  // in y: [column][row]
    y[i] = x[begin + at % size.rows * size.columns + at / size.rows];
  }
}

__global__ void __launch_bounds__(picture_threads) cut_negative(std::uint64_t count, float* x) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) x[i] = x[i] < 0.0f ? 0.0f : x[i];
}

// The position of a value of pictures.
struct PictureValue {
  std::uint64_t picture;
  std::uint32_t row, column, channel;
};
__device__ __forceinline__ PictureValue picture_value(Pictures size, std::uint64_t at) {
  PictureValue value;
  value.channel = static_cast<std::uint32_t>(at % size.channels);
  at /= size.channels;
  value.column = static_cast<std::uint32_t>(at % size.width);
  at /= size.width;
  value.row = static_cast<std::uint32_t>(at % size.height);
  value.picture = at / size.height;
  return value;
}
// The pixel at an offset, counted through all pictures; returns false outside of the picture.
__device__ __forceinline__ bool pixel_beside(Pictures size, PictureValue from, int down, int right,
                                             std::uint64_t& pixel) {
  const std::uint32_t row = from.row + static_cast<std::uint32_t>(down);  // wraps below zero
  const std::uint32_t column = from.column + static_cast<std::uint32_t>(right);
  if (row >= size.height || column >= size.width) return false;
  pixel = (from.picture * size.height + row) * size.width + column;
  return true;
}

__global__ void __launch_bounds__(picture_threads)
    see_windows(Pictures size, std::uint64_t count, const float* x, float* seen) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) {
    const int place = static_cast<int>(i % window_places);
    const PictureValue at = picture_value(size, i / window_places);
    std::uint64_t pixel = 0;
    const bool inside = pixel_beside(size, at, place / 3 - 1, place % 3 - 1, pixel);
    seen[i] = inside ? x[pixel * size.channels + at.channel] : 0.0f;
  }
}

__global__ void __launch_bounds__(picture_threads)
    see_windows_back(Pictures size, std::uint64_t count, const float* seen_change, bool add, float* x_change) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) {
    const PictureValue at = picture_value(size, i);
    float sum = add ? x_change[i] : 0.0f;
    for (int place = 0; place < static_cast<int>(window_places); ++place) {
      std::uint64_t pixel = 0;  // the pixel whose window has this value at `place`
      if (pixel_beside(size, at, 1 - place / 3, 1 - place % 3, pixel))
        sum += seen_change[(pixel * size.channels + at.channel) * window_places + static_cast<unsigned>(place)];
    }
    x_change[i] = sum;
  }
}

// The four values of a window of 2 x 2, row by row.
struct Pooled {
  std::uint64_t at[4];
};
__device__ __forceinline__ Pooled pooled_values(Pictures size, std::uint64_t picture, std::uint32_t row,
                                                std::uint32_t column, std::uint32_t channel) {
  const std::uint64_t below = std::uint64_t{size.width} * size.channels;
  Pooled p;
  p.at[0] = ((picture * size.height + 2 * row) * size.width + 2 * column) * size.channels + channel;
  p.at[1] = p.at[0] + size.channels;
  p.at[2] = p.at[0] + below;
  p.at[3] = p.at[2] + size.channels;
  return p;
}
// If a or b is NaN, the result is NaN.
__device__ __forceinline__ float larger_of(float a, float b) {
  return b > a || b != b ? b : a;
}
__device__ __forceinline__ float largest_of(const Pooled& p, const float* x) {
  return larger_of(larger_of(larger_of(x[p.at[0]], x[p.at[1]]), x[p.at[2]]), x[p.at[3]]);
}

// `to`: the output pictures; count: their values.
__global__ void __launch_bounds__(picture_threads)
    take_largest(Pictures from, Pictures to, std::uint64_t count, const float* x, float* y) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) {
    const PictureValue at = picture_value(to, i);
    y[i] = largest_of(pooled_values(from, at.picture, at.row, at.column, at.channel), x);
  }
}

// Runs over all values of `from`; those of an odd last row or column have no output and get 0.
__global__ void __launch_bounds__(picture_threads)
    take_largest_back(Pictures from, Pictures to, std::uint64_t count, const float* x, const float* y_change,
                      float* x_change) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) {
    const PictureValue at = picture_value(from, i);
    const std::uint32_t row = at.row / 2, column = at.column / 2;
    if (row >= to.height || column >= to.width) {
      x_change[i] = 0.0f;
      continue;
    }
    const Pooled p = pooled_values(from, at.picture, row, column, at.channel);
    const float largest = largest_of(p, x);
    // The gradient goes to the first maximum. If no value equals it, because of a NaN, it goes to the last value.
    unsigned first = 0;
    while (first < 3 && !(x[p.at[first]] == largest)) ++first;
    const std::uint64_t y = ((at.picture * to.height + row) * to.width + column) * to.channels + at.channel;
    x_change[i] = p.at[first] == i ? y_change[y] : 0.0f;
  }
}

// Each thread takes one channel of a picture; neighbouring threads read neighbouring numbers.
__global__ void __launch_bounds__(picture_threads)
    average_pixels(Pictures size, std::uint64_t count, const float* x, float* y) {
  const std::uint64_t pixels = std::uint64_t{size.height} * size.width;
  const float share = 1.0f / static_cast<float>(pixels);
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) {
    const float* from = x + i / size.channels * pixels * size.channels + i % size.channels;
    float sum = 0;
    for (std::uint64_t p = 0; p < pixels; ++p) sum = fmaf(share, from[p * size.channels], sum);
    y[i] = sum;
  }
}

__global__ void __launch_bounds__(picture_threads)
    average_pixels_back(Pictures size, std::uint64_t count, const float* y_change, float* x_change) {
  const std::uint64_t pixels = std::uint64_t{size.height} * size.width;
  const float share = 1.0f / static_cast<float>(pixels);
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads())
    x_change[i] = y_change[i / (pixels * size.channels) * size.channels + i % size.channels] * share;
}

// Runs over the values of `from`.
__global__ void __launch_bounds__(picture_threads)
    add_to_channels(std::uint64_t count, std::uint32_t from_channels, std::uint32_t to_channels, const float* from,
                    float* to) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads())
    to[i / from_channels * to_channels + i % from_channels] += from[i];
}

__global__ void __launch_bounds__(picture_threads)
    add_to_channels_back(std::uint64_t count, std::uint32_t from_channels, std::uint32_t to_channels,
                         const float* to_change, bool add, float* from_change) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) {
    const float change = to_change[i / from_channels * to_channels + i % from_channels];
    from_change[i] = add ? from_change[i] + change : change;
  }
}

}  // namespace rumor::gpu
