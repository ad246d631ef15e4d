// DeviceNewtonSchulz: models::NewtonSchulz on a GPU, the orthogonal matrix nearest to a given one.
//
// The five steps are taken on x itself, as the paper has them: x <- (a I + b A + c A^2) x, A = x x^T or, where it is
// smaller, x^T x. The CPU takes them on A alone and computes half of each symmetric product. Here a product computes
// all of a matrix, so x itself takes no more work. And only x bears rounded operands: the A of a rounded x has no
// negative eigenvalue, but a rounded A has, and each step multiplies it by twelve or more.
//
// Matrices of one layout at equal distances are taken together: each kernel and each product is one call for all of
// them, as the products of a single matrix are too small for a GPU. With bfloat16 products, x and the polynomial are
// written as bfloat16 by what computes them, and A is rounded once for its square; so each number is rounded where a
// product of floats would round it.
//
// Cost: 5 (2 m^2 n + m^3) multiply-adds, m the shorter side of x and n the longer one.
// Precision: within 1e-5 of the largest value of exact steps with float32 products, 3e-2 with tf32, 0.2 with bfloat16.
// The CPU's are within 1e-3.
// Memory, device: for each matrix of a group 8 (m n + m^2) bytes, with bfloat16 4 m n + 10 m^2, of the groups with the
// most m n and the most m^2; and 8 bytes for 8192 values and for each matrix.
// Thread: one caller at a time.
#pragma once

#include <span>

#include "gpu/device/device.h"
#include "gpu/device/products.h"

namespace rumor::gpu {

class DeviceNewtonSchulz {
 public:
  // Has room for these groups. Refers to `gpu`. Errors: Errc::limit.
  static Result<DeviceNewtonSchulz> create(const Gpu& gpu, Precision precision, std::span<const MatrixGroup> groups);
  // The device memory for one matrix of a group.
  static std::size_t matrix_bytes(Matrix size, Precision precision);

  // Begins: each matrix of `group` in y becomes its orthogonal matrix. What is between them stays. The work may be
  // recorded, but not the first of a group. Requires: one of the groups of create(). Errors: those of products.
  Result<void> orthogonalise(const MatrixGroup& group, float* y);
  std::size_t memory_bytes() const { return device_bytes(memory_, partial_, total_); }

 private:
  DeviceNewtonSchulz(const Gpu& gpu, Precision precision)
      : gpu_(&gpu), products_(gpu, precision), bf16_(precision == Precision::bf16) {}
  void find_polynomial(const MatrixGroup& group, ConstNumbers x);
  MatmulArgs next_step(const MatrixGroup& group, ConstNumbers x, Numbers y) const;

  const Gpu* gpu_;
  Products products_;
  bool bf16_;
  DeviceArray<float> memory_;  // of the arrays below, which have no gaps between matrices
  DeviceArray<double> partial_, total_;
  Numbers x_, next_;
  float *gram_ = nullptr, *square_ = nullptr;
  Numbers polynomial_;  // with bfloat16 first a rounded copy of gram_; otherwise in the place of square_
};

}  // namespace rumor::gpu
