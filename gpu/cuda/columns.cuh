// Sums down the columns of a matrix, in one order for every grid: chunks of chunk_rows rows, each ascending, then the
// sums of the chunks, ascending. A thread has one column of a chunk, so neighbouring threads read neighbouring numbers.
#pragma once

#include "gpu/cuda/common.cuh"
#include "gpu/cuda/rounding.cuh"
#include "gpu/device/model_table.h"

namespace rumor::gpu {

constexpr unsigned column_threads = 128;

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

// partial[chunk][column] = the sum over the chunk's rows.
template <class Number>
__global__ void __launch_bounds__(column_threads) sum_chunks(Matrix size, const Number* x, float* partial) {
  const ChunkColumn at = chunk_column(size);
  if (at.column >= size.columns) return;
  float sum = 0;
  for (std::uint32_t r = at.first_row; r < at.end_row; ++r)
    sum += number_of(x[std::size_t{r} * size.columns + at.column]);
  partial[std::size_t{at.chunk} * size.columns + at.column] = sum;
}

// sum[c] = the sum over `rows` rows, `stride` floats apart.
__global__ void __launch_bounds__(column_threads)
    sum_rows(std::uint32_t rows, std::uint32_t columns, std::size_t stride, const float* x, float* sum) {
  const std::uint64_t c = grid_thread();
  if (c >= columns) return;
  float all = 0;
  for (std::uint32_t r = 0; r < rows; ++r) all += x[r * stride + c];
  sum[c] = all;
}

}  // namespace rumor::gpu
