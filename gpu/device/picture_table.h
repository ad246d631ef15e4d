// PictureTable: the functions that a convolutional network needs on a GPU besides matrix products (gpu/device/table.h).
//
// Pictures are stored as models/layers/picture.h says, [count][height][width][channels], the values of a pixel
// together. A convolution is the product of weights with the windows of pictures. Windows use PyTorch's order of
// weights, so neither is reordered.
//
// Every slot has a reference on the CPU, in models/. All slots equal it bit for bit, except sums over pixels
// (GroupNorm, the mean of a pooling, the backward pass of windows): these are joined in another order and agree within
// a tolerance. In both cases the order is fixed and no sum uses atomics. tests/gpu/kernels/picture_kernels_test.cc
// compares.
//
// All pointers are device memory; outputs overlap no inputs unless a slot says so. Any size is valid, zero included.
// Order, thread: as gpu/device/table.h. C++17 and no library types.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/device/model_table.h"

namespace rumor::gpu {

struct Pictures {
  std::uint32_t count, height, width, channels;

  std::size_t pixels() const { return std::size_t{height} * width; }  // of one picture
  std::size_t size() const { return pixels() * channels; }            // of one picture
};

inline constexpr std::uint32_t window_places = 9;  // 3 x 3

// y = (x - mean) * scale * gain + bias, mean and scale = 1 / sqrt(variance + 1e-5) of a group of channels of one
// picture: models/layers/group_norm.h.
struct GroupNormArgs {
  Pictures size;
  std::uint32_t groups;  // at least one; divides the channels
  const float* x;
  const float* gain;  // [channels]
  const float* bias;  // [channels]
  float* y;
  float* mean;     // [count, groups]
  float* scale;    // [count, groups]
  float* scratch;  // group_norm_scratch(size)
};

// The backward pass, of the x of the last forward pass.
struct GroupNormChange {
  Pictures size;
  std::uint32_t groups;
  const float* x;
  const float* gain;
  const float* mean;
  const float* scale;
  const float* change;  // d loss / d y
  float* x_change;      // overwritten
  float* gain_change;   // [channels], overwritten
  float* bias_change;   // [channels], overwritten
  float* scratch;       // group_norm_scratch(size)
};

inline std::size_t chunks_of_pixels(Pictures size) {
  return size.pixels() / chunk_rows + (size.pixels() % chunk_rows != 0 ? 1 : 0);
}
// Floats: two sums per channel for each chunk of pixels of a picture, and four numbers per channel of a picture.
inline std::size_t group_norm_scratch(Pictures size) {
  return (2 * chunks_of_pixels(size) + 4) * size.count * size.channels;
}

struct PictureTable {
  // y[k][column][row] = x[k][row][column], `count` matrices.
  void (*turn)(Device* device, std::uint32_t count, Matrix size, const float* x, float* y);
  // x = x < 0 ? 0 : x. NaN stays NaN.
  void (*relu)(Device* device, std::uint64_t count, float* x);

  // The window of 3 x 3 around each pixel, zeros outside the picture: seen [count, pixels, channels, 9].
  void (*windows)(Device* device, Pictures size, const float* x, float* seen);
  // The backward pass: the sum of each value's gradients over its windows. Overwrites x_change, or adds to it if `add`.
  void (*windows_backward)(Device* device, Pictures size, const float* seen_change, bool add, float* x_change);

  void (*group_norm)(Device* device, const GroupNormArgs* args);
  void (*group_norm_backward)(Device* device, const GroupNormChange* args);

  // models/layers/pool.h, of pictures of `size`.
  void (*max_pool)(Device* device, Pictures size, const float* x, float* y);
  void (*max_pool_backward)(Device* device, Pictures size, const float* x, const float* y_change, float* x_change);
  void (*average_pool)(Device* device, Pictures size, const float* x, float* y);
  void (*average_pool_backward)(Device* device, Pictures size, const float* y_change, float* x_change);

  // to[pixel][c] += from[pixel][c], for the channels of `from`; `to` has at least as many channels.
  void (*add_channels)(Device* device, std::uint64_t pixels, std::uint32_t from_channels, std::uint32_t to_channels,
                       const float* from, float* to);
  // The backward pass: the gradient of the same channels of `to`. Overwrites from_change, or adds to it if `add`.
  void (*add_channels_backward)(Device* device, std::uint64_t pixels, std::uint32_t from_channels,
                                std::uint32_t to_channels, const float* to_change, bool add, float* from_change);
};

}  // namespace rumor::gpu
