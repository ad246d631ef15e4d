// OptimizerTable: the functions of an optimizer's step on a GPU that are neither part of a scan (gpu/device/table.h)
// nor a matrix product; and the copy of the weights that a step of several mini-batches sees.
//
// Every slot has a reference on the CPU and equals it bit for bit. tests/gpu/kernels/optimizer_kernels_test.cc
// compares.
//
// Matrices are row-major. All pointers are device memory and need only the alignment of their type. Outputs overlap no
// inputs unless a slot says so. Any size is valid, zero included.
// Order, thread: as gpu/device/table.h. C++17 and no library types.
#pragma once

#include <cstdint>

#include "gpu/device/model_table.h"

namespace rumor::gpu {

// a I + b A + c A^2 of a square matrix A.
struct Quadratic {
  float a, b, c;
};

// Matrices of one layout, the first number of each `step` numbers behind that of the one before. They share no number,
// but one may lie in the gaps between the rows of another. All have fewer than 2^32 numbers together.
struct MatrixGroup {
  MatrixLayout layout;
  std::uint32_t count;
  std::uint64_t step;
  // In one matrix.
  std::uint64_t numbers() const { return std::uint64_t{layout.rows} * layout.columns; }
};

struct OptimizerTable {
  // kept = momentum kept + gradient; gradient += momentum kept. `group`: where the matrices are in both.
  // Reference: models/optimizers/muon.cc.
  void (*look_ahead)(Device* device, MatrixGroup group, float momentum, float* gradient, float* kept);
  // total[m] = the sum of the squares of matrix m, as a double: the bits of ModelTable::square_sum of the matrix
  // without gaps. partial: scratch, square_partials(numbers of a matrix) for each matrix.
  void (*square_sums)(Device* device, MatrixGroup group, const float* x, double* partial, double* total);
  // Matrix m of y = matrix m of x / the root of squares[m]; where that is below norm_min, zeros. y has no gaps, neither
  // between rows nor between matrices. Reference: models/optimizers/newton_schulz.cc.
  void (*scale_to_one)(Device* device, MatrixGroup group, double norm_min, const double* squares, const float* x,
                       Numbers y);
  // y = a I + b gram + c square, each `count` matrices [order][order] without gaps. y may be `square`. Reference:
  // models/optimizers/newton_schulz.cc.
  void (*quadratic)(Device* device, std::uint32_t count, std::uint32_t order, Quadratic numbers, const float* gram,
                    const float* square, Numbers y);
  // to = from + factor change. Reference: runtime/training/local_steps.cc.
  void (*add_share)(Device* device, std::uint64_t count, const float* from, float factor, const float* change,
                    float* to);
};

}  // namespace rumor::gpu
