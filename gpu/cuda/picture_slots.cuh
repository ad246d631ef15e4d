// The slots of a PictureTable: which kernels each slot starts, in which grids. Included by gpu/cuda/slots.cuh, which
// says what must be defined before.
#pragma once

#include "gpu/cuda/grids.cuh"
#include "gpu/cuda/group_norm.cuh"
#include "gpu/cuda/pictures.cuh"
#include "gpu/device/table.h"

namespace rumor::gpu {
namespace slots {

// Starts a kernel that loops over `count` values in strides of its grid.
template <class Kernel, class... Args>
void over_values(Device* device, Kernel* kernel, std::uint64_t count, Args... args) {
  if (count != 0) launch(*device, kernel, stride_blocks(count, picture_threads), picture_threads, args...);
}

inline std::uint64_t values_of(Pictures size) {
  return std::uint64_t{size.count} * size.size();
}
inline Pictures half_of(Pictures size) {
  return {size.count, size.height / 2, size.width / 2, size.channels};
}

inline void turn(Device* device, std::uint32_t count, Matrix size, const float* x, float* y) {
  over_values(device, turn_matrices, std::uint64_t{count} * size.rows * size.columns, std::uint64_t{count}, size, x, y);
}

inline void relu(Device* device, std::uint64_t count, float* x) {
  over_values(device, cut_negative, count, count, x);
}

inline void windows(Device* device, Pictures size, const float* x, float* seen) {
  const std::uint64_t count = values_of(size) * window_places;
  over_values(device, see_windows, count, size, count, x, seen);
}

inline void windows_backward(Device* device, Pictures size, const float* seen_change, bool add, float* x_change) {
  over_values(device, see_windows_back, values_of(size), size, values_of(size), seen_change, add, x_change);
}

inline void max_pool(Device* device, Pictures size, const float* x, float* y) {
  const std::uint64_t count = values_of(half_of(size));
  over_values(device, take_largest, count, size, half_of(size), count, x, y);
}

inline void max_pool_backward(Device* device, Pictures size, const float* x, const float* y_change, float* x_change) {
  over_values(device, take_largest_back, values_of(size), size, half_of(size), values_of(size), x, y_change, x_change);
}

inline void average_pool(Device* device, Pictures size, const float* x, float* y) {
  const std::uint64_t count = std::uint64_t{size.count} * size.channels;
  over_values(device, average_pixels, count, size, count, x, y);
}

inline void average_pool_backward(Device* device, Pictures size, const float* y_change, float* x_change) {
  over_values(device, average_pixels_back, values_of(size), size, values_of(size), y_change, x_change);
}

inline void add_channels(Device* device, std::uint64_t pixels, std::uint32_t from_channels, std::uint32_t to_channels,
                         const float* from, float* to) {
  const std::uint64_t count = pixels * from_channels;
  over_values(device, add_to_channels, count, count, from_channels, to_channels, from, to);
}

inline void add_channels_backward(Device* device, std::uint64_t pixels, std::uint32_t from_channels,
                                  std::uint32_t to_channels, const float* to_change, bool add, float* from_change) {
  const std::uint64_t count = pixels * from_channels;
  over_values(device, add_to_channels_back, count, count, from_channels, to_channels, to_change, add, from_change);
}

// Sums chunks of pixels; `what` selects the terms.
template <PixelSum what>
void sum_pixels(Device* device, Pictures size, std::uint32_t groups, const float* x, const float* change,
                const float* mean, float* scratch) {
  const std::uint64_t chunks = chunks_of_pixels(size), sums = chunks * size.count * size.channels;
  launch(*device, sum_chunk_of_pixels<what>, blocks_of(sums, group_threads), group_threads, size, groups, chunks, x,
         change, mean, scratch);
}

inline void group_norm(Device* device, const GroupNormArgs* args) {
  const Pictures size = args->size;
  const std::uint64_t count = values_of(size), chunks = chunks_of_pixels(size);
  if (count == 0) return;
  const std::uint64_t blocks = blocks_of(std::uint64_t{size.count} * args->groups, group_threads);
  const float* const none = nullptr;
  sum_pixels<PixelSum::values>(device, size, args->groups, args->x, none, none, args->scratch);
  launch(*device, mean_of_groups, blocks, group_threads, size, args->groups, chunks, false, args->scratch, args->mean);
  sum_pixels<PixelSum::squares>(device, size, args->groups, args->x, none, args->mean, args->scratch);
  launch(*device, mean_of_groups, blocks, group_threads, size, args->groups, chunks, true, args->scratch, args->scale);
  launch(*device, norm_pixels, stride_blocks(count, group_threads), group_threads, *args, count);
}

inline void group_norm_backward(Device* device, const GroupNormChange* args) {
  const Pictures size = args->size;
  const std::uint64_t count = values_of(size), chunks = chunks_of_pixels(size);
  if (count != 0) {
    sum_pixels<PixelSum::changes>(device, size, args->groups, args->x, args->change, args->mean, args->scratch);
    launch(*device, norm_back_groups, blocks_of(std::uint64_t{size.count} * args->groups, group_threads),
           group_threads, *args, chunks);
    launch(*device, norm_back_pixels, stride_blocks(count, group_threads), group_threads, *args, chunks, count);
  }
  if (size.channels == 0) return;
  // If there are no values, there is nothing to add up.
  const Pictures summed = count != 0 ? size : Pictures{0, size.height, size.width, size.channels};
  launch(*device, sum_pictures, blocks_of(size.channels, group_threads), group_threads, summed, chunks, args->scratch,
         args->gain_change, args->bias_change);
}

}  // namespace slots

inline PictureTable picture_table() {
  PictureTable table = {};
  table.turn = slots::turn;
  table.relu = slots::relu;
  table.windows = slots::windows;
  table.windows_backward = slots::windows_backward;
  table.group_norm = slots::group_norm;
  table.group_norm_backward = slots::group_norm_backward;
  table.max_pool = slots::max_pool;
  table.max_pool_backward = slots::max_pool_backward;
  table.average_pool = slots::average_pool;
  table.average_pool_backward = slots::average_pool_backward;
  table.add_channels = slots::add_channels;
  table.add_channels_backward = slots::add_channels_backward;
  return table;
}

}  // namespace rumor::gpu
