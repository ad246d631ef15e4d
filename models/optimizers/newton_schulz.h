// NewtonSchulz: the orthogonal matrix nearest to a given one, roughly.
//
// With x = U S V^T (singular values), y is about U V^T: every singular value above a thousandth of the Euclidean norm
// ends between 0.68 and 1.13, smaller ones are multiplied by up to 485. Five steps of the quintic iteration of
// Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks":
//
//   x <- x / |x|,  then five times  x <- (3.4445 I - 4.7750 A + 2.0315 A^2) x,  A = x x^T
//
// The steps are taken on A alone, whose side is the shorter one of x, and their product is applied to x once, at the
// end. All these matrices are symmetric, so half of each is computed.
//
// Cost: about 10 m^3 + 1.6 m^2 n fused multiply-adds, m the shorter side of x and n the longer one.
// Memory: 5 m^2 + m n floats of the largest matrix so far.
// Bits: every sum runs in one fixed order (models/kernels/kernel_table.h), so they are equal on every machine.
// Thread: one caller at a time.
#pragma once

#include <cstddef>
#include <span>

#include "runtime/base/large_vector.h"

namespace rumor::models {

// The numbers of the iteration.
inline constexpr int newton_steps = 5;
inline constexpr float newton_a = 3.4445f, newton_b = -4.7750f, newton_c = 2.0315f;
// A matrix of a smaller norm counts as zero: the inverse would be no float.
inline constexpr double newton_norm_min = 1e-30;

class NewtonSchulz {
 public:
  // y [rows][cols] from x [rows][cols], row-major; x is scaled to norm 1. A norm below 1e-30 gives zeros; a value that
  // is not finite gives such values. Requires: rows, cols >= 1, as many floats in both, no overlap.
  void orthogonalise(std::span<float> x, std::size_t rows, std::size_t cols, std::span<float> y);
  std::size_t memory_bytes() const;

 private:
  void measure(std::span<const float> x, long rows, long cols);
  void iterate(long order);

  LargeVector<float> turned_;  // x^T of a wide x
  LargeVector<float> gram_;    // A
  LargeVector<float> square_, polynomial_, product_;
  LargeVector<float> factor_;  // what the steps so far multiply x by
};

}  // namespace rumor::models
