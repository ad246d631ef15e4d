// Kernels of a Llama, with the bits of models/kernels/sequence_kernels_variant.cc: RMSNorm, rotary positions, SwiGLU.
#pragma once

#include "gpu/cuda/eights.cuh"
#include "gpu/cuda/layer_norm.cuh"
#include "gpu/cuda/math.cuh"
#include "gpu/device/llama_table.h"

namespace rumor::gpu {

// ---- RMSNorm. Lanes take rows as in gpu/cuda/layer_norm.cuh, so sums over a row have the CPU's order.

template <class Number>
__global__ void __launch_bounds__(norm_threads) rms_norm_each_row(RmsNormArgs args) {
  const NormRow at = norm_row(args.size);
  const std::uint32_t columns = args.size.columns, lane = threadIdx.x % norm_lanes;
  const std::size_t begin = at.row * columns;
  const float* x = args.x + begin;
  if (args.more != nullptr && at.there) {  // each lane reads back only what it wrote itself
    for (std::uint32_t c = lane; c < columns; c += norm_lanes) args.sum[begin + c] = x[c] + args.more[begin + c];
    x = args.sum + begin;
  }
  float squares = 0;
  for (std::uint32_t c = lane; c < columns; c += norm_lanes) squares += x[c] * x[c];
  const float scale = 1.0f / sqrtf(row_sum(squares) / static_cast<float>(columns) + args.epsilon);
  if (!at.there) return;
  Number* y = those_of<Number>(args.y) + begin;
  for (std::uint32_t c = lane; c < columns; c += norm_lanes) put_number(y[c], x[c] * scale * args.gain[c]);
  if (lane == 0) args.scale[at.row] = scale;
}

// With n = x * scale and g = gain * change:  d x = scale * (g - n * mean of (g * n)).
template <class Number>
__global__ void __launch_bounds__(norm_threads) rms_norm_back_each_row(RmsNormChange args) {
  const NormRow at = norm_row(args.size);
  const std::uint32_t columns = args.size.columns, lane = threadIdx.x % norm_lanes;
  const std::size_t begin = at.row * columns;
  const float* x = args.x + begin;
  const Number* change = those_of<Number>(args.change) + begin;
  const float scale = args.scale[at.row];
  float sum = 0;
  for (std::uint32_t c = lane; c < columns; c += norm_lanes)
    sum += number_of(change[c]) * args.gain[c] * (x[c] * scale);
  const float minus_mean = -(row_sum(sum) / static_cast<float>(columns));
  if (!at.there) return;
  for (std::uint32_t c = lane; c < columns; c += norm_lanes) {
    const float inner = fmaf(minus_mean, x[c] * scale, number_of(change[c]) * args.gain[c]);
    const float moved = fmaf(inner, scale, args.x_change[begin + c]);
    args.x_change[begin + c] = moved;
    if (args.rounded != nullptr) args.rounded[begin + c] = rounded_bf16(moved);
  }
}

// partial[chunk][column]: the chunk's part of the gradient of the gain.
template <class Number>
__global__ void __launch_bounds__(column_threads) rms_norm_back_chunks(RmsNormChange args) {
  const ChunkColumn at = chunk_column(args.size);
  const std::size_t columns = args.size.columns;
  if (at.column >= columns) return;
  float gain = 0;
  for (std::size_t r = at.first_row; r < at.end_row; ++r) {
    const float change = number_of(those_of<Number>(args.change)[r * columns + at.column]);
    gain = fmaf(change, args.x[r * columns + at.column] * args.scale[r], gain);
  }
  args.partial[at.chunk * columns + at.column] = gain;
}

// ---- Rotary positions, in place. A block takes a row of qkv; a thread takes eight pairs of a head at a time. The two
// numbers of a pair lie head_size / 2 apart.

constexpr unsigned rotary_threads = 128;

// The biases of head `head` of a row.
__device__ __forceinline__ const float* bias_of_head(const RotaryArgs& args, std::uint32_t head) {
  if (head < args.heads) return args.query_bias + std::size_t{head} * args.head_size;
  head -= args.heads;
  if (head < args.kv_heads) return args.key_bias + std::size_t{head} * args.head_size;
  return args.value_bias + std::size_t{head - args.kv_heads} * args.head_size;
}

__device__ __forceinline__ Eight load_floats(const float* from, std::uint32_t at, std::uint32_t count) {
  return load_eight(from, at, count, is_aligned(from, 16), 0.0f);
}

// x += y
__device__ __forceinline__ void add_eight(Eight& x, const Eight& y) {
  RUMOR_UNROLL
  for (unsigned i = 0; i < eight; ++i) x.v[i] += y.v[i];
}

// direction: 1 forward, -1 back.
template <class Number>
__global__ void __launch_bounds__(rotary_threads) rotate_rows(RotaryArgs args, float direction) {
  const std::uint32_t half = args.head_size / 2, eights = half / eight + (half % eight != 0 ? 1 : 0);
  const std::uint32_t turning = args.heads + args.kv_heads;
  const std::uint32_t heads = args.query_bias != nullptr ? turning + args.kv_heads : turning;
  const std::size_t row = blockIdx.x, place = row % args.context * half;
  Number* x = those_of<Number>(args.qkv) + row * (turning + args.kv_heads) * args.head_size;
  for (std::uint32_t item = threadIdx.x; item < heads * eights; item += rotary_threads) {
    const std::uint32_t head = item / eights, at = item % eights * eight;
    Number *const low = x + std::size_t{head} * args.head_size, *const high = low + half;
    const bool aligned = is_aligned(low, 16) && is_aligned(high, 16);
    Eight a = load_eight(low, at, half, aligned, 0.0f), b = load_eight(high, at, half, aligned, 0.0f);
    if (args.query_bias != nullptr) {
      const float* bias = bias_of_head(args, head);
      add_eight(a, load_floats(bias, at, half));
      add_eight(b, load_floats(bias + half, at, half));
    }
    if (head < turning) {
      const Eight cosine = load_floats(args.cosine + place, at, half), sine = load_floats(args.sine + place, at, half);
      RUMOR_UNROLL
      for (unsigned i = 0; i < eight; ++i) {
        const float c = cosine.v[i], s = sine.v[i] * direction, before = a.v[i];
        a.v[i] = fmaf(before, c, -(b.v[i] * s));
        b.v[i] = fmaf(b.v[i], c, before * s);
      }
    }
    store_eight(low, at, half, aligned, a);
    store_eight(high, at, half, aligned, b);
  }
}

// ---- SwiGLU. A block takes a row; a thread takes eight numbers of it at a time.

constexpr unsigned swiglu_threads = 256;

// 1 / (1 + e^-x), at least 4e-18.
__device__ __forceinline__ float sigmoid(float x) {
  const float exponent = -x;
  return 1.0f / (1.0f + exponential(exponent > 40.0f ? 40.0f : exponent));
}

template <class Number>
__global__ void __launch_bounds__(swiglu_threads) swiglu_rows(Matrix size, const Number* x, Number* y) {
  const std::size_t row = blockIdx.x, columns = size.columns;
  const Number *const gate = x + row * 2 * columns, *const up = gate + columns;
  Number* const to = y + row * columns;
  const bool aligned = is_aligned(gate, 16) && is_aligned(up, 16) && is_aligned(to, 16);
  for (std::size_t at = std::size_t{threadIdx.x} * eight; at < columns; at += swiglu_threads * eight) {
    Eight all = load_eight(gate, at, columns, aligned, 0.0f);
    const Eight factor = load_eight(up, at, columns, aligned, 0.0f);
    RUMOR_UNROLL
    for (unsigned i = 0; i < eight; ++i) all.v[i] = all.v[i] * sigmoid(all.v[i]) * factor.v[i];
    store_eight(to, at, columns, aligned, all);
  }
}

template <class Number>
__global__ void __launch_bounds__(swiglu_threads)
    back_through_swiglu(Matrix size, const Number* x, const Number* change, Number* x_change) {
  const std::size_t row = blockIdx.x, columns = size.columns;
  const Number *const gate = x + row * 2 * columns, *const up = gate + columns, *const of_y = change + row * columns;
  Number *const gate_change = x_change + row * 2 * columns, *const up_change = gate_change + columns;
  const bool aligned = is_aligned(gate, 16) && is_aligned(up, 16) && is_aligned(of_y, 16) &&
                       is_aligned(gate_change, 16) && is_aligned(up_change, 16);
  for (std::size_t at = std::size_t{threadIdx.x} * eight; at < columns; at += swiglu_threads * eight) {
    Eight g = load_eight(gate, at, columns, aligned, 0.0f), u = load_eight(up, at, columns, aligned, 0.0f);
    const Eight d = load_eight(of_y, at, columns, aligned, 0.0f);
    RUMOR_UNROLL
    for (unsigned i = 0; i < eight; ++i) {
      const float s = sigmoid(g.v[i]), silu = g.v[i] * s;
      g.v[i] = d.v[i] * u.v[i] * fmaf(silu, 1.0f - s, s);
      u.v[i] = d.v[i] * silu;
    }
    store_eight(gate_change, at, columns, aligned, g);
    store_eight(up_change, at, columns, aligned, u);
  }
}

}  // namespace rumor::gpu
