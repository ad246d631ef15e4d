// Matrix products and their epilogues against sums in double of numbers rounded as asked. In the emulation products are
// the CPU's, so what is proven here without a GPU is all around them, and with one, cuBLASLt's part as well.
#include <bit>
#include <boost/test/unit_test.hpp>

#include "models/kernels.h"
#include "models/sequence_kernels.h"
#include "tests/gpu/emulated_product.h"
#include "tests/gpu/numbers.h"
#include "tests/gpu/target.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_matmul)

namespace {

float rounded(float value, Precision precision) {
  if (precision == Precision::fp32) return value;
  if (precision == Precision::tf32) return emulated_tf32(value);
  float best = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xffff'0000);  // towards zero
  const float next = std::bit_cast<float>(std::bit_cast<std::uint32_t>(best) + 0x1'0000);
  const double down = std::abs(double{value} - double{best}), up = std::abs(double{next} - double{value});
  const bool best_is_even = (std::bit_cast<std::uint32_t>(best) >> 16 & 1) == 0;
  return up < down || (up == down && !best_is_even) ? next : best;
}

struct Product {
  std::uint32_t rows, columns, depth;
  bool a_turned = false, b_turned = false, add = false;
  Precision precision = Precision::fp32;
  Epilogue epilogue = Epilogue::none;
};

// What the epilogue is of, by the definition.
std::vector<double> reference(const Product& p, const Floats& a, const Floats& b, const Floats& y, const Floats& bias) {
  std::vector<double> sums;
  for (std::uint32_t r = 0; r < p.rows; ++r)
    for (std::uint32_t c = 0; c < p.columns; ++c) {
      double sum = p.add ? double{y[std::size_t{r} * p.columns + c]} : 0;
      for (std::uint32_t k = 0; k < p.depth; ++k) {
        const float left = a[p.a_turned ? std::size_t{k} * p.rows + r : std::size_t{r} * p.depth + k];
        const float right = b[p.b_turned ? std::size_t{c} * p.depth + k : std::size_t{k} * p.columns + c];
        sum += double{rounded(left, p.precision)} * double{rounded(right, p.precision)};
      }
      sums.push_back(p.epilogue == Epilogue::none ? sum : sum + double{bias[c]});
    }
  return sums;
}

// Compared with what the hardware may do with tf32: cut off instead of rounded.
double tolerance(Precision precision) {
  return precision == Precision::tf32 && on_device() ? 2e-3 : 5e-6;
}

void check(std::uint64_t order, const Product& p, Prng& prng) {
  const Target target(order);
  if (!has_products(target)) return;
  const std::size_t count = std::size_t{p.rows} * p.columns, skip = prng.below(4);
  const Floats a = drawn(prng, std::size_t{p.rows} * p.depth), b = drawn(prng, std::size_t{p.depth} * p.columns),
               bias = drawn(prng, p.columns), y = drawn(prng, count);
  const Guarded<float> on_a(target, a, skip), on_b(target, b, skip), on_y(target, y, skip), on_bias(target, bias, skip),
      before(target, count, skip);
  const MatmulArgs args{p.rows, p.columns,   p.depth,        on_a.data(),   on_b.data(), p.a_turned, p.b_turned,
                        p.add,  on_y.data(), on_bias.data(), before.data(), p.precision, p.epilogue};
  ErrorText error{};
  BOOST_TEST_REQUIRE((target.table().model.matmul(target.device(), &args, &error) == Status::ok), error.text);
  const std::vector<double> sums = reference(p, a, b, y, bias);
  const Floats got = on_y.read();
  if (p.epilogue == Epilogue::bias_gelu) {
    const Floats linear = before.read();
    BOOST_TEST(distance(linear, sums) < tolerance(p.precision));
    Floats expected(count);
    models::kernels().sequence->gelu(static_cast<long>(count), linear.data(), expected.data());
    BOOST_TEST(distance(got, expected) < (on_device() ? 1e-3 : 1e-30));  // cuBLASLt approximates the tanh
    return;
  }
  std::vector<double> expected = sums;
  if (p.epilogue == Epilogue::bias_relu)
    for (double& value : expected) value = std::max(value, 0.0);
  BOOST_TEST(distance(got, expected) < tolerance(p.precision));
}

}  // namespace

BOOST_AUTO_TEST_CASE(products_of_all_shapes_precisions_and_epilogues) {
  Prng prng(71);
  std::uint64_t order = 0;
  const std::uint32_t sizes[] = {1, 2, 3, 7, 8, 16, 33, 64, 130};
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16})
    for (const Epilogue epilogue : {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu})
      for (int turn = 0; turn < 4; ++turn) {
        const Product p{.rows = sizes[prng.below(9)],
                        .columns = sizes[prng.below(9)],
                        .depth = sizes[prng.below(9)],
                        .a_turned = turn % 2 == 1,
                        .b_turned = turn > 1,
                        .add = epilogue == Epilogue::none && prng.chance(1, 2),
                        .precision = precision,
                        .epilogue = epilogue};
        check(order++ % 6, p, prng);
      }
}

BOOST_AUTO_TEST_CASE(nothing_to_multiply) {
  Prng prng(72);
  for (const Product& p : {Product{0, 5, 3}, Product{5, 0, 3}, Product{4, 5, 0}, Product{4, 5, 0, false, false, true},
                           Product{3, 70, 0, false, false, false, Precision::bf16, Epilogue::bias_gelu},
                           Product{3, 7, 0, false, false, false, Precision::fp32, Epilogue::bias}})
    check(1, p, prng);
}

// The numbers that are hard to round: halfway, the largest, denormals, infinities, NaNs.
BOOST_AUTO_TEST_CASE(rounding_to_bfloat16) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Floats from{1.0f,   0x1.01p+0f, 0x1.03p+0f, -0x1.01p+0f, 0x1.010002p+0f, 0x1.fep+127f,   3.4e38f,
                    1e-40f, 0x1p-149f,  -0.0f,      infinity,    -infinity,      -3.4028235e38f, std::nanf("")};
  const Floats to{1.0f,      1.0f, 0x1.04p+0f, -1.0f,    0x1.02p+0f, 0x1.fep+127f, infinity,
                  0x1p-133f, 0.0f, 0.0f,       infinity, -infinity,  -infinity,    std::nanf("")};
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Target target;
    if (!has_products(target)) return;
    const Guarded<float> a(target, Floats{from[i]}), b(target, Floats{1.0f}), y(target, 1);
    const MatmulArgs args{1,     1,        1,       a.data(), b.data(),        false,         false,
                          false, y.data(), nullptr, nullptr,  Precision::bf16, Epilogue::none};
    ErrorText error{};
    BOOST_TEST_REQUIRE((target.table().model.matmul(target.device(), &args, &error) == Status::ok), error.text);
    const float got = y.read()[0];
    BOOST_TEST(same_bits({got}, {to[i]}), from[i] << " became " << got);
  }
}

BOOST_AUTO_TEST_SUITE_END()
