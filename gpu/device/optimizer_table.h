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

struct OptimizerTable {
  // kept = momentum kept + gradient; ahead = gradient + momentum kept. `size` is the layout of kept and gradient; the
  // rows of `ahead` have no gaps. Reference: models/optimizers/muon.cc.
  void (*look_ahead)(Device* device, MatrixLayout size, float momentum, const float* gradient, float* kept,
                     float* ahead);
  // x /= the root of *squares; where that is below norm_min, x becomes zeros. Reference:
  // models/optimizers/newton_schulz.cc.
  void (*scale_to_one)(Device* device, std::uint64_t count, double norm_min, const double* squares, float* x);
  // square = a I + b gram + c square, both [order][order]. Reference: models/optimizers/newton_schulz.cc.
  void (*quadratic)(Device* device, std::uint32_t order, Quadratic numbers, const float* gram, float* square);
  // to = from + factor change. Reference: runtime/training/local_steps.cc.
  void (*add_share)(Device* device, std::uint64_t count, const float* from, float factor, const float* change,
                    float* to);
};

}  // namespace rumor::gpu
