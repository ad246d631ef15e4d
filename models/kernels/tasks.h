// Work cut into pieces for models/*.cc: over the threads that a driver lent, or on the caller's alone.
//
// Results never depend on the number of threads: pieces write to different places, and where they make sums,
// the cut is the same for any number (RowChunks).
#pragma once

#include <algorithm>
#include <cstddef>

#include "models/kernels/kernel_table.h"
#include "runtime/base/parallel.h"

namespace rumor::models {

// task(i) for every i in [0, count). `parallel` may be null.
template <class Task>
void each_task(Parallel* parallel, std::size_t count, Task&& task) {
  if (parallel && count > 1) {
    parallel->each(count, task);
  } else {
    for (std::size_t i = 0; i < count; ++i) task(i);
  }
}

struct Range {
  long begin = 0, end = 0;
  long size() const { return end - begin; }
};

// Piece i of n of [0, count), cut at multiples of `grain`; the last ones may be empty.
inline Range piece_of(long count, std::size_t n, std::size_t i, long grain) {
  const long grains = (count + grain - 1) / grain;
  const auto edge = [&](std::size_t at) {
    return std::min(count, grains * static_cast<long>(at) / static_cast<long>(n) * grain);
  };
  return {edge(i), edge(i + 1)};
}

// task(range) over [0, count), one piece for each thread.
template <class Task>
void each_range(Parallel* parallel, long count, long grain, Task&& task) {
  const std::size_t pieces = parallel ? parallel->width() : 1;
  each_task(parallel, pieces, [&](std::size_t i) {
    const Range range = piece_of(count, pieces, i, grain);
    if (range.size() > 0) task(range);
  });
}

// The same, in ranges of at most `most`: short enough that the data before and after a product stays in the cache.
template <class Task>
void each_range(Parallel* parallel, long count, long grain, long most, Task&& task) {
  each_range(parallel, count, grain, [&](Range part) {
    for (long at = part.begin; at < part.end; at += most) task(Range{at, std::min(at + most, part.end)});
  });
}

// Calls task(rows, columns) for all of a matrix, in tiles that stay in the second-level cache, so that the work before
// and after the product finds them there. Tiles are multiples of the product's block.
template <class Task>
void each_tile(Parallel* parallel, long rows, long columns, Task&& task) {
  constexpr long rows_max = 384, columns_max = 512;
  each_range(parallel, rows, 24, rows_max, [&](Range part) {
    for (long c = 0; c < columns; c += columns_max) task(part, Range{c, std::min(c + columns_max, columns)});
  });
}

// KernelTable::matmul, its output cut between the threads. Any cut gives the same bits.
void parallel_matmul(Parallel* parallel, long rows, long columns, long depth, MatrixView a, const float* b,
                     long b_row, float* y, long y_row, Start start);

}  // namespace rumor::models
