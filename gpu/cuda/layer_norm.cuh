// Layer norm with the bits of models/kernels/sequence_kernels_variant.cc. A sum over a row is sixteen chains, element i
// in chain i mod 16, joined in halves. Sixteen lanes therefore take a row, two rows per warp.
#pragma once

#include "gpu/cuda/columns.cuh"
#include "gpu/cuda/common.cuh"
#include "gpu/cuda/rounding.cuh"
#include "gpu/device/model_table.h"

namespace rumor::gpu {

constexpr unsigned norm_threads = 128;
constexpr unsigned norm_lanes = 16;
constexpr unsigned norm_rows = norm_threads / norm_lanes;
constexpr float norm_epsilon = 1e-5f;

// Called by whole warps: the sum over the sixteen lanes of this row, in each of them.
__device__ __forceinline__ float row_sum(float value) {
  for (unsigned distance = norm_lanes / 2; distance > 0; distance /= 2)
    value += __shfl_xor_sync(whole_warp, value, distance);
  return value;
}

// The row of this thread. Threads beyond the last row compute the last row again and write nothing: all lanes of a warp
// must take part in warp instructions.
struct NormRow {
  std::size_t row;
  bool there;
};
__device__ __forceinline__ NormRow norm_row(Matrix size) {
  const std::uint64_t row = std::uint64_t{blockIdx.x} * norm_rows + threadIdx.x / norm_lanes;
  if (row < size.rows) return {static_cast<std::size_t>(row), true};
  return {size.rows - std::size_t{1}, false};
}

template <class Number>
__global__ void __launch_bounds__(norm_threads) norm_each_row(LayerNormArgs args) {
  const NormRow at = norm_row(args.size);
  const std::uint32_t columns = args.size.columns, lane = threadIdx.x % norm_lanes;
  const float count = static_cast<float>(columns);
  const std::size_t begin = at.row * columns;
  const float* x = args.x + begin;
  if (args.more != nullptr && at.there) {  // each lane reads back only what it wrote itself
    for (std::uint32_t c = lane; c < columns; c += norm_lanes) args.sum[begin + c] = x[c] + args.more[begin + c];
    x = args.sum + begin;
  }
  float sum = 0;
  for (std::uint32_t c = lane; c < columns; c += norm_lanes) sum += x[c];
  const float mean = row_sum(sum) / count;
  float squares = 0;
  for (std::uint32_t c = lane; c < columns; c += norm_lanes) {
    const float off = x[c] - mean;
    squares += off * off;
  }
  const float scale = 1.0f / sqrtf(row_sum(squares) / count + norm_epsilon);
  if (!at.there) return;
  Number* y = those_of<Number>(args.y) + begin;
  for (std::uint32_t c = lane; c < columns; c += norm_lanes)
    put_number(y[c], fmaf((x[c] - mean) * scale, args.gain[c], args.bias[c]));
  if (lane != 0) return;
  args.mean[at.row] = mean;
  args.scale[at.row] = scale;
}

// With n = (x - mean) * scale and g = gain * change:  d x = scale * (g - mean of g - n * mean of (g * n)).
template <class Number>
__global__ void __launch_bounds__(norm_threads) norm_back_each_row(LayerNormChange args) {
  const NormRow at = norm_row(args.size);
  const std::uint32_t columns = args.size.columns, lane = threadIdx.x % norm_lanes;
  const float count = static_cast<float>(columns);
  const std::size_t begin = at.row * columns;
  const float* x = args.x + begin;
  const Number* change = those_of<Number>(args.change) + begin;
  const float mean = args.mean[at.row], scale = args.scale[at.row];
  float g_sum = 0, gn_sum = 0;
  for (std::uint32_t c = lane; c < columns; c += norm_lanes) {
    const float g = number_of(change[c]) * args.gain[c];
    g_sum += g;
    gn_sum += g * ((x[c] - mean) * scale);
  }
  const float g_mean = row_sum(g_sum) / count, minus_gn_mean = -(row_sum(gn_sum) / count);
  if (!at.there) return;
  for (std::uint32_t c = lane; c < columns; c += norm_lanes) {
    const float inner = fmaf(minus_gn_mean, (x[c] - mean) * scale, number_of(change[c]) * args.gain[c] - g_mean);
    const float sum = fmaf(inner, scale, args.x_change[begin + c]);
    args.x_change[begin + c] = sum;
    if (args.rounded != nullptr) args.rounded[begin + c] = rounded_bf16(sum);
  }
}

// partial[chunk][0 and 1][column]: the chunk's part of the gradients of gain and bias.
template <class Number>
__global__ void __launch_bounds__(column_threads) norm_back_chunks(LayerNormChange args) {
  const ChunkColumn at = chunk_column(args.size);
  const std::size_t columns = args.size.columns;
  if (at.column >= columns) return;
  float gain = 0, bias = 0;
  for (std::size_t r = at.first_row; r < at.end_row; ++r) {
    const float change = number_of(those_of<Number>(args.change)[r * columns + at.column]);
    gain = fmaf(change, (args.x[r * columns + at.column] - args.mean[r]) * args.scale[r], gain);
    bias = change + bias;
  }
  float* partial = args.partial + at.chunk * 2 * columns + at.column;
  partial[0] = gain;
  partial[columns] = bias;
}

}  // namespace rumor::gpu
