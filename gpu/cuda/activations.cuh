// Bias, ReLU and GELU where the epilogue of a matrix product does not compute them, and rounding for products. With a
// bias, a thread takes one column of chunk_rows rows, so it reads its bias once.
#pragma once

#include "gpu/cuda/columns.cuh"
#include "gpu/cuda/common.cuh"
#include "gpu/cuda/eights.cuh"
#include "gpu/cuda/math.cuh"
#include "gpu/device/model_table.h"

namespace rumor::gpu {

constexpr unsigned activation_threads = 256;

template <class Number>
__global__ void __launch_bounds__(column_threads) add_bias(Matrix size, const Number* bias, Number* x) {
  const ChunkColumn at = chunk_column(size);
  if (at.column >= size.columns) return;
  const float own = number_of(bias[at.column]);
  for (std::size_t r = at.first_row; r < at.end_row; ++r) {
    Number& value = x[r * size.columns + at.column];
    put_number(value, number_of(value) + own);
  }
}

template <class Number>
__global__ void __launch_bounds__(column_threads) add_bias_relu(Matrix size, const Number* bias, Number* x) {
  const ChunkColumn at = chunk_column(size);
  if (at.column >= size.columns) return;
  const float own = number_of(bias[at.column]);
  for (std::size_t r = at.first_row; r < at.end_row; ++r) {
    Number& value = x[r * size.columns + at.column];
    const float sum = number_of(value) + own;
    put_number(value, sum < 0.0f ? 0.0f : sum);
  }
}

__global__ void __launch_bounds__(activation_threads)
    back_through_relu(std::uint64_t count, const float* activation, float* change) {
  for (std::uint64_t i = grid_thread(); i < count; i += grid_threads())
    change[i] = activation[i] > 0.0f ? change[i] : 0.0f;
}

template <class Number>
__global__ void __launch_bounds__(column_threads) add_bias_gelu(Matrix size, const Number* bias, Number* x, Number* y) {
  const ChunkColumn at = chunk_column(size);
  if (at.column >= size.columns) return;
  const float own = number_of(bias[at.column]);
  for (std::size_t r = at.first_row; r < at.end_row; ++r) {
    const std::size_t i = r * size.columns + at.column;
    const float sum = number_of(x[i]) + own;
    put_number(x[i], sum);
    put_number(y[i], gelu(sum));
  }
}

template <class Number>
__global__ void __launch_bounds__(activation_threads)
    back_through_gelu(std::uint64_t count, const Number* x, Number* change) {
  const bool aligned = is_aligned(x, 16) && is_aligned(change, 16);
  for (std::uint64_t at = grid_thread() * eight; at < count; at += grid_threads() * eight) {
    const Eight before = load_eight(x, at, count, aligned, 0.0f);
    Eight all = load_eight(change, at, count, aligned, 0.0f);
    RUMOR_UNROLL
    for (unsigned i = 0; i < eight; ++i) all.v[i] *= gelu_slope(before.v[i]);
    store_eight(change, at, count, aligned, all);
  }
}

__global__ void __launch_bounds__(activation_threads) round_to_bf16(std::uint64_t count, const float* from, Bf16* to) {
  const bool aligned = is_aligned(from, 16) && is_aligned(to, 16);
  for (std::uint64_t at = grid_thread() * eight; at < count; at += grid_threads() * eight)
    store_eight(to, at, count, aligned, load_eight(from, at, count, aligned, 0.0f));
}

}  // namespace rumor::gpu
