// Newton-Schulz against the five steps as the paper writes them, in double.
#include "models/optimizers/newton_schulz.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "models/kernels/kernels.h"
#include "runtime/base/kernel_choice.h"
#include "runtime/base/prng.h"
#include "runtime/base/sha256.h"

namespace rumor::models {
namespace {

struct Shape {
  std::size_t rows, cols;
};
constexpr Shape shapes[] = {{1, 1}, {1, 7}, {7, 1}, {3, 3}, {16, 40}, {40, 16}, {65, 70}, {130, 64}, {128, 512}};

std::vector<float> random(Shape shape, std::uint64_t seed) {
  Prng prng(seed);
  std::vector<float> x(shape.rows * shape.cols);
  for (float& value : x) value = static_cast<float>(prng.between(-1000, 1000)) / 300;
  return x;
}

// x <- 3.4445 x - 4.7750 A x + 2.0315 A A x,  A = x x^T
std::vector<double> reference(const std::vector<float>& from, Shape shape) {
  const auto [rows, cols] = shape;
  std::vector<double> x(from.begin(), from.end());
  double norm = 0;
  for (const double value : x) norm += value * value;
  for (double& value : x) value /= std::sqrt(norm);
  const auto times_a = [&, rows = rows, cols = cols](const std::vector<double>& a, const std::vector<double>& y) {
    std::vector<double> out(y.size(), 0);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t k = 0; k < rows; ++k)
        for (std::size_t c = 0; c < cols; ++c) out[r * cols + c] += a[r * rows + k] * y[k * cols + c];
    return out;
  };
  for (int step = 0; step < 5; ++step) {
    std::vector<double> a(rows * rows, 0);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t k = 0; k < rows; ++k)
        for (std::size_t c = 0; c < cols; ++c) a[r * rows + k] += x[r * cols + c] * x[k * cols + c];
    const std::vector<double> once = times_a(a, x), twice = times_a(a, once);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] - 4.7750 * once[i] + 2.0315 * twice[i];
  }
  return x;
}

std::vector<float> orthogonal(NewtonSchulz& by, std::vector<float> x, Shape shape) {
  std::vector<float> y(x.size(), -1);
  by.orthogonalise(x, shape.rows, shape.cols, y);
  return y;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(newton_schulz)

// One object for all: a smaller matrix after a larger one finds its memory in use.
BOOST_AUTO_TEST_CASE(it_is_the_papers_iteration_for_wide_tall_and_square_matrices) {
  NewtonSchulz newton_schulz;
  for (const Shape shape : shapes) {
    if (shape.rows * shape.cols > 10'000) continue;
    const std::vector<float> x = random(shape, shape.rows), y = orthogonal(newton_schulz, x, shape);
    const std::vector<double> expected = reference(x, shape);
    double worst = 0;
    for (std::size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(y[i] - expected[i]));
    BOOST_TEST(worst < 3e-4, shape.rows << " x " << shape.cols << ": " << worst);
  }
}

BOOST_AUTO_TEST_CASE(singular_values_end_near_one) {
  NewtonSchulz newton_schulz;
  const Shape shape{64, 256};  // a random matrix of this shape has singular values within a factor of 3
  const std::vector<float> y = orthogonal(newton_schulz, random(shape, 2), shape);
  double squares = 0;
  for (const float value : y) squares += double{value} * value;
  BOOST_TEST(squares / 64 > 0.68 * 0.68);
  BOOST_TEST(squares / 64 < 1.13 * 1.13);
}

BOOST_AUTO_TEST_CASE(the_scale_of_the_matrix_does_not_matter_and_zeros_stay) {
  NewtonSchulz newton_schulz;
  const Shape shape{16, 40};
  std::vector<float> x = random(shape, 3);
  const std::vector<float> y = orthogonal(newton_schulz, x, shape);
  for (float& value : x) value *= 1e-12f;
  const std::vector<float> small = orthogonal(newton_schulz, x, shape);
  for (std::size_t i = 0; i < y.size(); ++i) BOOST_TEST(std::abs(small[i] - y[i]) < 1e-4);
  for (const float nothing : {0.0f, 1e-42f}) {
    const std::vector<float> zeros = orthogonal(newton_schulz, std::vector<float>(x.size(), nothing), shape);
    BOOST_TEST((zeros == std::vector<float>(x.size(), 0.0f)));
  }
}

// One digest for all compilers, optimisation levels and processors.
BOOST_AUTO_TEST_CASE(it_has_the_same_bits_in_every_build) {
  NewtonSchulz newton_schulz;
  Bytes bytes;
  for (const Shape shape : shapes) {
    const std::vector<float> y = orthogonal(newton_schulz, random(shape, 6), shape);
    const auto* at = reinterpret_cast<const std::uint8_t*>(y.data());
    bytes.insert(bytes.end(), at, at + y.size() * sizeof(float));
  }
  BOOST_TEST(sha256(bytes).hex() == "c2c1bc68691a2499b3cfac0d4a18f0ca28db35f4b9fa1a59cb2684848c601f27");
}

// A gradient that is not finite must reach the check of the compressor, not vanish here.
BOOST_AUTO_TEST_CASE(what_is_not_finite_shows) {
  NewtonSchulz newton_schulz;
  for (const float broken : {NAN, INFINITY}) {
    std::vector<float> x = random({8, 8}, 4);
    x[9] = broken;
    const std::vector<float> y = orthogonal(newton_schulz, x, {8, 8});
    std::size_t shown = 0;
    for (const float value : y) shown += std::isfinite(value) ? 0 : 1;
    BOOST_TEST(shown > 0U);
  }
}

BOOST_AUTO_TEST_CASE(all_kernels_give_the_same_bits) {
  for (const Shape shape : shapes) {
    std::vector<float> first;
    for (const KernelTable* table : kernel_variants()) {
      BOOST_REQUIRE(choose_kernels(table->name).ok());
      NewtonSchulz newton_schulz;
      const std::vector<float> y = orthogonal(newton_schulz, random(shape, 5), shape);
      if (first.empty()) first = y;
      BOOST_TEST((y == first), table->name << " " << shape.rows << " x " << shape.cols);
    }
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
