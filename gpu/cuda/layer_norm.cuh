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

// Rows of at most norm_lanes * held numbers stay in registers: a lane has numbers lane, lane + 16, ... of its row. It
// starts all loads before it uses a number, and reads and writes memory once. whole: rows have norm_lanes * held
// numbers.
template <unsigned held_, bool whole_>
struct RowForm {
  static constexpr unsigned held = held_;
  static constexpr bool whole = whole_;
  // Whether number k of a lane that has `count` is there.
  static __device__ __forceinline__ bool has(std::uint32_t count, unsigned k) { return whole ? count != 0 : k < count; }
};
template <class Form>
struct Held {
  float v[Form::held];
};
// Loads the first `count` numbers of a lane; the others become 0. row: the lane's first number.
template <class Form, class Number>
__device__ __forceinline__ Held<Form> load_held(const Number* row, std::uint32_t count) {
  Held<Form> all;
  RUMOR_UNROLL
  for (unsigned k = 0; k < Form::held; ++k) all.v[k] = Form::has(count, k) ? number_of(row[k * norm_lanes]) : 0.0f;
  return all;
}

// How many numbers of its row a lane has; where the first of them is.
struct LaneNumbers {
  std::uint32_t count;
  std::size_t first;
};
__device__ __forceinline__ LaneNumbers lane_numbers(NormRow at, std::uint32_t columns) {
  const std::uint32_t lane = threadIdx.x % norm_lanes, last = norm_lanes - 1 - lane;
  return {at.there ? (columns + last) / norm_lanes : 0, at.row * columns + lane};
}

template <class Number, class Form>
__global__ void __launch_bounds__(norm_threads) norm_each_row(LayerNormArgs args) {
  const NormRow at = norm_row(args.size);
  const LaneNumbers own = lane_numbers(at, args.size.columns);
  const std::uint32_t count = own.count, lane = threadIdx.x % norm_lanes;
  const float columns = static_cast<float>(args.size.columns);
  Held<Form> x = load_held<Form>(args.x + own.first, count);
  if (args.more != nullptr) {
    const Held<Form> more = load_held<Form>(args.more + own.first, count);
    RUMOR_UNROLL
    for (unsigned k = 0; k < Form::held; ++k) {
      x.v[k] += more.v[k];
      if (Form::has(count, k)) args.sum[own.first + k * norm_lanes] = x.v[k];
    }
  }
  float sum = 0;
  RUMOR_UNROLL
  for (unsigned k = 0; k < Form::held; ++k) sum += x.v[k];
  const float mean = row_sum(sum) / columns;
  float squares = 0;
  RUMOR_UNROLL
  for (unsigned k = 0; k < Form::held; ++k) {
    const float off = x.v[k] - mean;
    squares += Form::has(count, k) ? off * off : 0.0f;
  }
  const float scale = 1.0f / sqrtf(row_sum(squares) / columns + norm_epsilon);
  const float *gain = args.gain + lane, *bias = args.bias + lane;
  Number* y = those_of<Number>(args.y) + own.first;
  RUMOR_UNROLL
  for (unsigned k = 0; k < Form::held; ++k) {
    const unsigned c = k * norm_lanes;
    if (Form::has(count, k)) put_number(y[c], fmaf((x.v[k] - mean) * scale, gain[c], bias[c]));
  }
  if (lane != 0 || !at.there) return;
  args.mean[at.row] = mean;
  args.scale[at.row] = scale;
}

// With n = (x - mean) * scale and g = gain * change:  d x = scale * (g - mean of g - n * mean of (g * n)).
template <class Number, class Form>
__global__ void __launch_bounds__(norm_threads) norm_back_each_row(LayerNormChange args) {
  const NormRow at = norm_row(args.size);
  const LaneNumbers own = lane_numbers(at, args.size.columns);
  const std::uint32_t count = own.count;
  const float columns = static_cast<float>(args.size.columns);
  const float mean = args.mean[at.row], scale = args.scale[at.row];
  Held<Form> n = load_held<Form>(args.x + own.first, count);
  Held<Form> g = load_held<Form>(those_of<Number>(args.change) + own.first, count);
  const Held<Form> before = load_held<Form>(args.x_change + own.first, count);
  const float* gain = args.gain + threadIdx.x % norm_lanes;
  float g_sum = 0, gn_sum = 0;
  RUMOR_UNROLL
  for (unsigned k = 0; k < Form::held; ++k) {
    n.v[k] = (n.v[k] - mean) * scale;
    g.v[k] *= Form::has(count, k) ? gain[k * norm_lanes] : 0.0f;
    g_sum += g.v[k];
    gn_sum += Form::has(count, k) ? g.v[k] * n.v[k] : 0.0f;
  }
  const float g_mean = row_sum(g_sum) / columns, minus_gn_mean = -(row_sum(gn_sum) / columns);
  RUMOR_UNROLL
  for (unsigned k = 0; k < Form::held; ++k) {
    if (!Form::has(count, k)) continue;
    const std::size_t c = own.first + k * norm_lanes;
    const float sum = fmaf(fmaf(minus_gn_mean, n.v[k], g.v[k] - g_mean), scale, before.v[k]);
    args.x_change[c] = sum;
    if (args.rounded != nullptr) args.rounded[c] = rounded_bf16(sum);
  }
}

// ---- Rows that do not fit in registers are read again for each sum.

template <class Number>
__global__ void __launch_bounds__(norm_threads) norm_each_long_row(LayerNormArgs args) {
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

// norm_back_each_row() of such rows.
template <class Number>
__global__ void __launch_bounds__(norm_threads) norm_back_each_long_row(LayerNormChange args) {
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

// partial[chunk][0 and 1][column]: the chunk's part of the gradients of gain and bias. Rows ascend; each turn first
// starts the loads of `ahead` rows.
template <class Number>
__global__ void __launch_bounds__(column_threads, column_blocks_at_once) norm_back_chunks(LayerNormChange args) {
  constexpr unsigned ahead = 16;
  const ChunkColumn at = chunk_column(args.size);
  const std::size_t columns = args.size.columns;
  if (at.column >= columns) return;
  float gain = 0, bias = 0;
  for (std::size_t r = at.first_row; r < at.end_row; r += ahead) {
    const std::size_t left = at.end_row - r, first = r * columns + at.column;
    Number change[ahead];
    float n[ahead];
    RUMOR_UNROLL
    for (unsigned i = 0; i < ahead; ++i) {
      change[i] = i < left ? those_of<Number>(args.change)[first + i * columns] : Number{};
      n[i] = i < left ? args.x[first + i * columns] : 0.0f;
    }
    RUMOR_UNROLL
    for (unsigned i = 0; i < ahead; ++i) {
      if (i >= left) break;
      gain = fmaf(number_of(change[i]), (n[i] - args.mean[r + i]) * args.scale[r + i], gain);
      bias = number_of(change[i]) + bias;
    }
  }
  float* partial = args.partial + at.chunk * 2 * columns + at.column;
  partial[0] = gain;
  partial[columns] = bias;
}

}  // namespace rumor::gpu
