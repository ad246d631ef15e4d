#include "models/optimizers/newton_schulz.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/kernels.h"
#include "models/optimizers/optimizer.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::models {
namespace {

// Columns of a symmetric product that are computed together, from the first row down to their diagonal.
constexpr long symmetric_block = 16;

// y = a b for a product that is symmetric. a: [order][depth]; b: [depth][order], rows without gaps. What is left of a
// block on the diagonal is the transpose of what is above it.
void symmetric_product(long order, long depth, MatrixView a, const float* b, float* y) {
  for (long begin = 0; begin < order; begin += symmetric_block) {
    const long end = std::min(order, begin + symmetric_block);
    kernels().matmul(end, end - begin, depth, a, b + begin, order, y + begin, order, Start::zero);
    kernels().transpose(begin, end - begin, y + begin, order, y + begin * order, order);
  }
}

void symmetric_product(long order, const float* a, const float* b, float* y) {
  symmetric_product(order, order, {a, order, 1}, b, y);
}

}  // namespace

// A = x x^T, or x^T x where that is smaller.
void NewtonSchulz::measure(std::span<const float> x, long rows, long cols) {
  const long order = std::min(rows, cols);
  const auto area = static_cast<std::size_t>(order * order);
  for (LargeVector<float>* matrix : {&gram_, &square_, &polynomial_, &product_, &factor_})
    if (matrix->size() < area) matrix->resize(area);
  if (rows > cols) {
    symmetric_product(order, rows, {x.data(), 1, cols}, x.data(), gram_.data());
    return;
  }
  if (turned_.size() < x.size()) turned_.resize(x.size());
  kernels().transpose(rows, cols, x.data(), cols, turned_.data(), rows);
  symmetric_product(order, cols, {x.data(), cols, 1}, turned_.data(), gram_.data());
}

// Factor: the product of the polynomials of all steps. A of the next step is polynomial A polynomial.
void NewtonSchulz::iterate(long order) {
  float *gram = gram_.data(), *square = square_.data(), *polynomial = polynomial_.data();
  for (int step = 0; step < newton_steps; ++step) {
    symmetric_product(order, gram, gram, square);
    for (long i = 0; i < order * order; ++i) polynomial[i] = newton_b * gram[i] + newton_c * square[i];
    for (long i = 0; i < order; ++i) polynomial[i * order + i] += newton_a;
    if (step == 0) {
      std::copy_n(polynomial, order * order, factor_.data());
    } else {
      symmetric_product(order, polynomial, factor_.data(), product_.data());
      std::swap(factor_, product_);
    }
    if (step + 1 == newton_steps) break;
    symmetric_product(order, gram, polynomial, square);
    symmetric_product(order, square, polynomial, gram);
  }
}

void NewtonSchulz::orthogonalise(std::span<float> x, std::size_t rows, std::size_t cols, std::span<float> y) {
  RUMOR_CHECK(rows >= 1 && cols >= 1 && x.size() == rows * cols && y.size() == x.size());
  const double norm = euclidean_norm(x);
  if (norm < newton_norm_min) {
    std::fill(y.begin(), y.end(), 0.0f);
    return;
  }
  const auto scale = static_cast<float>(1 / norm);
  for (float& value : x) value *= scale;
  const auto height = static_cast<long>(rows), width = static_cast<long>(cols);
  measure(x, height, width);
  iterate(std::min(height, width));
  if (height > width)
    kernels().matmul(height, width, width, {x.data(), width, 1}, factor_.data(), width, y.data(), width, Start::zero);
  else
    kernels().matmul(height, width, height, {factor_.data(), height, 1}, x.data(), width, y.data(), width,
                     Start::zero);
}

std::size_t NewtonSchulz::memory_bytes() const {
  return capacity_bytes(turned_, gram_, square_, polynomial_, product_, factor_);
}

}  // namespace rumor::models
