// DeviceNewtonSchulz: models::NewtonSchulz on a GPU, the orthogonal matrix nearest to a given one.
//
// The five steps are taken on x itself, as the paper has them: x <- (a I + b A + c A^2) x, A = x x^T or, where it is
// smaller, x^T x. The CPU takes them on A alone and computes half of each symmetric product. Here a product computes
// all of a matrix, so x itself takes no more work. And only x bears rounded operands: the A of a rounded x has no
// negative eigenvalue, but a rounded A has, and each step multiplies it by twelve or more.
//
// Cost: 5 (2 m^2 n + m^3) multiply-adds, m the shorter side of x and n the longer one.
// Precision: within 1e-5 of the largest value of exact steps with float32 products, 3e-2 with tf32, 0.2 with bfloat16.
// The CPU's are within 1e-3.
// Memory, device: 2 m^2 + 2 m n floats of the largest sides, and 8 bytes for 8192 values.
// Thread: one caller at a time.
#pragma once

#include <span>

#include "gpu/device/device.h"
#include "gpu/device/products.h"

namespace rumor::gpu {

class DeviceNewtonSchulz {
 public:
  // Has room for matrices of these sizes. Refers to `gpu`. Errors: Errc::limit.
  static Result<DeviceNewtonSchulz> create(const Gpu& gpu, Precision precision, std::span<const Matrix> sizes);

  // Where to write the matrix, without gaps between its rows.
  float* x() const { return x_; }
  // Begins y = the orthogonal matrix of x(), which is used up. `size`: the layout of y. The work may be recorded, but
  // not the first of a size. Errors: those of products.
  Result<void> orthogonalise(const MatrixLayout& size, float* y);
  std::size_t memory_bytes() const { return device_bytes(memory_, partial_, total_); }

 private:
  DeviceNewtonSchulz(const Gpu& gpu, Precision precision) : gpu_(&gpu), products_(gpu, precision) {}
  void find_polynomial(const MatrixLayout& size, const float* x);
  void multiply(const MatrixLayout& size, const float* x, float* y, std::uint32_t y_stride);

  const Gpu* gpu_;
  Products products_;
  DeviceArray<float> memory_;  // of the four arrays below
  DeviceArray<double> partial_, total_;
  float *x_ = nullptr, *next_ = nullptr;
  float *gram_ = nullptr, *polynomial_ = nullptr;
};

}  // namespace rumor::gpu
