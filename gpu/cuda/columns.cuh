// Sums down the columns of a matrix, in one order for every grid: chunks of chunk_rows rows, each ascending, then the
// sums of the chunks, ascending. A thread has one column of a chunk, so neighbouring threads read neighbouring numbers.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/cuda/rounding.cuh"
#include "gpu/device/model_table.h"

namespace rumor::gpu {

constexpr unsigned column_threads = 128;
constexpr unsigned rows_ahead = 32;  // numbers of a column that a thread loads at once
// Blocks per multiprocessor that are enough. Without this number nvcc saves registers, and starts half of the loads.
constexpr unsigned column_blocks_at_once = 6;

// Blocks for one row of columns; the chunk and column of a thread.
__device__ __forceinline__ std::uint32_t column_blocks(std::uint32_t columns) {
  return columns / column_threads + (columns % column_threads != 0 ? 1 : 0);
}
struct ChunkColumn {
  std::uint32_t chunk, column, first_row, end_row;
};
__device__ __forceinline__ ChunkColumn chunk_column(Matrix size) {
  const std::uint32_t across = column_blocks(size.columns);
  ChunkColumn at;
  at.chunk = blockIdx.x / across;
  at.column = blockIdx.x % across * column_threads + threadIdx.x;
  at.first_row = at.chunk * chunk_rows;
  const std::uint32_t left = size.rows - at.first_row;
  at.end_row = at.first_row + (left < chunk_rows ? left : chunk_rows);
  return at;
}

// The sum of `count` numbers that lie `stride` apart, ascending. Each turn first starts all loads, then adds: waiting
// for memory takes most of the time. Numbers that are not there count as 0, which changes no bit of a sum from +0 on.
template <class Number>
__device__ __forceinline__ float sum_down(const Number* x, std::uint32_t count, std::size_t stride) {
  float sum = 0;
  for (std::uint32_t first = 0; first < count; first += rows_ahead) {
    const std::uint32_t left = count - first;
    Number next[rows_ahead];
    RUMOR_UNROLL
    for (unsigned i = 0; i < rows_ahead; ++i) next[i] = i < left ? x[i * stride] : Number{};
    RUMOR_UNROLL
    for (unsigned i = 0; i < rows_ahead; ++i) sum += number_of(next[i]);
    if (left <= rows_ahead) break;  // first must not pass the largest number
    x += rows_ahead * stride;
  }
  return sum;
}

// partial[chunk][column] = the sum over the chunk's rows.
template <class Number>
__global__ void __launch_bounds__(column_threads, column_blocks_at_once)
    sum_chunks(Matrix size, const Number* x, float* partial) {
  const ChunkColumn at = chunk_column(size);
  if (at.column >= size.columns) return;
  const Number* top = x + std::size_t{at.first_row} * size.columns + at.column;
  partial[std::size_t{at.chunk} * size.columns + at.column] = sum_down(top, at.end_row - at.first_row, size.columns);
}

// The sums of all columns of x [rows, columns]: the first `split` go to `sum`, the others to `rest`.
__global__ void __launch_bounds__(column_threads, column_blocks_at_once)
    sum_rows(std::uint32_t rows, std::uint64_t columns, const float* x, std::uint64_t split, float* sum, float* rest) {
  const std::uint64_t c = grid_thread();
  if (c >= columns) return;
  const float all = sum_down(x + c, rows, columns);
  if (c < split)
    sum[c] = all;
  else
    rest[c - split] = all;
}

}  // namespace rumor::gpu
