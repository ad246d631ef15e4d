// GroupNorm. First, each thread sums one channel over a chunk of chunk_rows pixels, ascending. Then one thread per
// group adds over chunks and channels in double. Last, each value is normalised by itself.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/device/picture_table.h"

namespace rumor::gpu {

constexpr unsigned group_threads = 128;
constexpr double group_epsilon = 1e-5;

// The layout of scratch: the sums of chunks, [picture][chunk][channel], two arrays. Then for each channel of a picture
// two sums, and the slope and shift of x * slope + shift.
struct GroupScratch {
  float *first, *second;  // sums of chunks
  float *gain, *bias;     // [picture][channel]
  float *slope, *shift;   // [picture][group]
};
__device__ __forceinline__ GroupScratch group_scratch(Pictures size, std::uint64_t chunks, float* scratch) {
  const std::uint64_t channels = std::uint64_t{size.count} * size.channels;
  GroupScratch at;
  at.first = scratch;
  at.second = scratch + chunks * channels;
  at.gain = at.second + chunks * channels;
  at.bias = at.gain + channels;
  at.slope = at.bias + channels;
  at.shift = at.slope + channels;
  return at;
}

// The terms that sum_chunk_of_pixels() adds up.
enum class PixelSum : std::uint32_t {
  values = 0,   // first: x
  squares = 1,  // first: (x - mean)^2
  changes = 2,  // first: change; second: change * (x - mean)
};

// Each thread takes one channel of a chunk of a picture. `mean`: [count, groups]; not read for PixelSum::values.
template <PixelSum what>
__global__ void __launch_bounds__(group_threads)
    sum_chunk_of_pixels(Pictures size, std::uint32_t groups, std::uint64_t chunks, const float* x, const float* change,
                        const float* mean, float* scratch) {
  const std::uint64_t i = grid_thread();
  if (i >= chunks * size.count * size.channels) return;
  const std::uint32_t channel = static_cast<std::uint32_t>(i % size.channels);
  const std::uint64_t chunk = i / size.channels % chunks, picture = i / size.channels / chunks;
  const std::uint64_t pixels = std::uint64_t{size.height} * size.width;
  const std::uint64_t first = chunk * chunk_rows, end = first + chunk_rows < pixels ? first + chunk_rows : pixels;
  const float own_mean =
      what == PixelSum::values ? 0.0f : mean[picture * groups + channel / (size.channels / groups)];
  float sum = 0, product = 0;
  for (std::uint64_t p = first; p < end; ++p) {
    const std::uint64_t at = (picture * pixels + p) * size.channels + channel;
    const float off = x[at] - own_mean;
    if (what == PixelSum::values) sum += x[at];
    if (what == PixelSum::squares) sum = fmaf(off, off, sum);
    if (what == PixelSum::changes) {
      sum += change[at];
      product = fmaf(change[at], off, product);
    }
  }
  const GroupScratch to = group_scratch(size, chunks, scratch);
  to.first[i] = sum;
  if (what == PixelSum::changes) to.second[i] = product;
}

// The sum of the chunks of one channel of one picture.
__device__ __forceinline__ float join_chunks_of(const float* sums, Pictures size, std::uint64_t chunks,
                                                std::uint64_t picture, std::uint32_t channel) {
  float sum = 0;
  for (std::uint64_t k = 0; k < chunks; ++k) sum += sums[(picture * chunks + k) * size.channels + channel];
  return sum;
}

// out[picture, group] = the mean of the summed values, or, with `deviation`, 1 / sqrt(that mean + epsilon).
__global__ void __launch_bounds__(group_threads)
    mean_of_groups(Pictures size, std::uint32_t groups, std::uint64_t chunks, bool deviation, float* scratch,
                   float* out) {
  const std::uint64_t i = grid_thread();
  if (i >= std::uint64_t{size.count} * groups) return;
  const std::uint32_t own = size.channels / groups, begin = static_cast<std::uint32_t>(i % groups) * own;
  const GroupScratch from = group_scratch(size, chunks, scratch);
  double sum = 0;
  for (std::uint32_t c = begin; c < begin + own; ++c)
    sum += static_cast<double>(join_chunks_of(from.first, size, chunks, i / groups, c));
  const double mean = sum / (static_cast<double>(size.height) * size.width * own);
  out[i] = static_cast<float>(deviation ? 1.0 / sqrt(mean + group_epsilon) : mean);
}

__global__ void __launch_bounds__(group_threads) norm_pixels(GroupNormArgs args, std::uint64_t count) {
  const Pictures size = args.size;
  const std::uint64_t each = std::uint64_t{size.height} * size.width * size.channels;
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) {
    const std::uint32_t channel = static_cast<std::uint32_t>(i % size.channels);
    const std::uint64_t group = i / each * args.groups + channel / (size.channels / args.groups);
    const float scale = args.gain[channel] * args.scale[group];
    args.y[i] = fmaf(args.x[i], scale, args.bias[channel] - args.mean[group] * scale);
  }
}

// With n = (x - mean) * scale and g = change * gain, and means over the group:
//   d x = (g - mean of g - n * mean of (g * n)) * scale = change * gain * scale + x * slope + shift
__global__ void __launch_bounds__(group_threads) norm_back_groups(GroupNormChange args, std::uint64_t chunks) {
  const Pictures size = args.size;
  const std::uint64_t i = grid_thread();
  if (i >= std::uint64_t{size.count} * args.groups) return;
  const std::uint32_t own = size.channels / args.groups, begin = static_cast<std::uint32_t>(i % args.groups) * own;
  const std::uint64_t picture = i / args.groups;
  const GroupScratch at = group_scratch(size, chunks, args.scratch);
  const double scale = static_cast<double>(args.scale[i]);
  double changes = 0, products = 0;
  for (std::uint32_t c = begin; c < begin + own; ++c) {
    const float change = join_chunks_of(at.first, size, chunks, picture, c);
    const float product = join_chunks_of(at.second, size, chunks, picture, c);
    at.bias[picture * size.channels + c] = change;
    at.gain[picture * size.channels + c] = product * args.scale[i];
    changes += static_cast<double>(args.gain[c]) * static_cast<double>(change);
    products += static_cast<double>(args.gain[c]) * static_cast<double>(product) * scale;
  }
  const double values = static_cast<double>(size.height) * size.width * own;
  const double slope = -scale * scale * (products / values);
  at.slope[i] = static_cast<float>(slope);
  at.shift[i] = static_cast<float>(-scale * (changes / values) - slope * static_cast<double>(args.mean[i]));
}

__global__ void __launch_bounds__(group_threads)
    norm_back_pixels(GroupNormChange args, std::uint64_t chunks, std::uint64_t count) {
  const Pictures size = args.size;
  const std::uint64_t each = std::uint64_t{size.height} * size.width * size.channels;
  const GroupScratch at = group_scratch(size, chunks, args.scratch);
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads()) {
    const std::uint32_t channel = static_cast<std::uint32_t>(i % size.channels);
    const std::uint64_t group = i / each * args.groups + channel / (size.channels / args.groups);
    const float line = fmaf(args.x[i], at.slope[group], at.shift[group]);
    args.x_change[i] = fmaf(args.change[i], args.gain[channel] * args.scale[group], line);
  }
}

// out[c] = the sum over pictures, ascending.
__global__ void __launch_bounds__(group_threads)
    sum_pictures(Pictures size, std::uint64_t chunks, float* scratch, float* gain_change, float* bias_change) {
  const std::uint64_t c = grid_thread();
  if (c >= size.channels) return;
  const GroupScratch at = group_scratch(size, chunks, scratch);
  float gain = 0, bias = 0;
  for (std::uint64_t k = 0; k < size.count; ++k) {
    gain += at.gain[k * size.channels + c];
    bias += at.bias[k * size.channels + c];
  }
  gain_change[c] = gain;
  bias_change[c] = bias;
}

}  // namespace rumor::gpu
