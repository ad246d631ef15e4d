// Matrix products and their epilogues against sums in double of numbers rounded as asked. In the emulation products are
// the CPU's, so what is proven here without a GPU is all around them, and with one, cuBLASLt's part as well.
#include <bit>
#include <boost/test/unit_test.hpp>

#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "tests/gpu/emulation/emulated_product.h"
#include "tests/gpu/kernels/numbers.h"
#include "tests/gpu/target.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_matmul)

namespace {

float rounded(float value, Precision precision) {
  if (precision == Precision::fp32) return value;
  if (precision == Precision::tf32) return emulated_tf32(value);
  return nearest_bf16(value);
}

// An array that may be bfloat16.
struct Either {
  bool bf16;
  Guarded<float> floats;
  Guarded<Bf16> halves;
  Either(const Target& target, bool are_bf16, const Floats& values, std::size_t skip)
      : bf16(are_bf16), floats(target, values, skip), halves(target, numbers_of<Bf16>(values), skip) {}
  Numbers numbers() const { return bf16 ? Numbers(halves.data()) : Numbers(floats.data()); }
  Floats read() const { return bf16 ? floats_of(halves.read()) : floats.read(); }
};

struct Product {
  std::uint32_t rows, columns, depth;
  bool a_turned = false, b_turned = false, add = false;
  Precision precision = Precision::fp32;
  Epilogue epilogue = Epilogue::none;
  bool a_bf16 = false, b_bf16 = false, y_bf16 = false;
  std::uint32_t gap = 0;  // between rows of a, b and y
};

// The values before the epilogue, by the definition of the product.
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
      const bool bare = p.epilogue == Epilogue::none || p.epilogue == Epilogue::gelu_back;
      sums.push_back(bare ? sum : sum + double{bias[c]});
    }
  return sums;
}

// Compared with what the hardware may do with tf32: cut off instead of rounded. A result in bfloat16 is rounded once
// or, where the epilogue is by itself, twice.
double tolerance(const Product& p) {
  if (p.y_bf16) return 1e-2;
  return p.precision == Precision::tf32 && on_device() ? 2e-3 : 5e-6;
}

MatmulArgs without_arrays(const Product& p) {
  MatmulArgs args{};
  args.rows = p.rows;
  args.columns = p.columns;
  args.depth = p.depth;
  args.a_turned = p.a_turned;
  args.b_turned = p.b_turned;
  args.add = p.add;
  args.precision = p.precision;
  args.epilogue = p.epilogue;
  return args;
}

void check(std::uint64_t order, const Product& p, Prng& prng) {
  const Target target(order);
  if (!has_products(target)) return;
  const std::size_t count = std::size_t{p.rows} * p.columns, skip = prng.below(4);
  const Floats a = drawn(prng, std::size_t{p.rows} * p.depth), b = drawn(prng, std::size_t{p.depth} * p.columns),
               bias = drawn(prng, p.columns), y = drawn(prng, count), linear = drawn(prng, count, 3);
  MatmulArgs args = without_arrays(p);
  if (p.gap != 0) {
    args.a_stride = layout_of_a(args).columns + p.gap;
    args.b_stride = layout_of_b(args).columns + p.gap;
    args.y_stride = p.columns + p.gap;
  }
  const Either on_a(target, p.a_bf16, with_gaps(a, layout_of_a(args)), skip),
      on_b(target, p.b_bf16, with_gaps(b, layout_of_b(args)), skip),
      on_y(target, p.y_bf16, with_gaps(y, layout_of_y(args)), skip), on_bias(target, p.y_bf16, bias, skip),
      before(target, p.y_bf16, linear, skip);
  args.a = on_a.numbers();
  args.b = on_b.numbers();
  args.y = on_y.numbers();
  args.bias = on_bias.numbers();
  args.before = before.numbers();
  ErrorText error{};
  BOOST_TEST_REQUIRE((target.table().model.matmul(target.device(), &args, &error) == Status::ok), error.text);
  const std::vector<double> sums = reference(p, a, b, y, bias);
  const Floats spread = on_y.read(), got = without_gaps(spread, layout_of_y(args));
  if (!p.y_bf16 && p.depth > 0) BOOST_TEST(same_bits(spread, with_gaps(got, layout_of_y(args))));  // gaps stay
  if (p.epilogue == Epilogue::bias_gelu) {
    const Floats of = before.read();
    BOOST_TEST(distance(of, sums) < tolerance(p));
    Floats expected(count);
    models::kernels().sequence->gelu(static_cast<long>(count), of.data(), expected.data());
    // cuBLASLt approximates the tanh; what it or the kernel is of was not rounded yet.
    BOOST_TEST(distance(got, expected) < (p.y_bf16 ? 1e-2 : on_device() ? 1e-3 : 1e-30));
    return;
  }
  if (p.epilogue == Epilogue::gelu_back) {
    Floats expected(sums.begin(), sums.end());
    const Floats at = before.read();
    models::kernels().sequence->gelu_backward(static_cast<long>(count), at.data(), expected.data());
    BOOST_TEST(distance(got, expected) < (on_device() ? std::max(tolerance(p), 1e-3) : tolerance(p)));
    return;
  }
  std::vector<double> expected = sums;
  if (p.epilogue == Epilogue::bias_relu)
    for (double& value : expected) value = std::max(value, 0.0);
  BOOST_TEST(distance(got, expected) < tolerance(p));
}

}  // namespace

BOOST_AUTO_TEST_CASE(products_of_all_shapes_precisions_and_epilogues) {
  Prng prng(71);
  std::uint64_t order = 0;
  const std::uint32_t sizes[] = {1, 2, 3, 7, 8, 16, 33, 64, 130};
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16})
    for (const Epilogue epilogue : {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu,
                                    Epilogue::gelu_back})
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

BOOST_AUTO_TEST_CASE(numbers_that_are_bfloat16_already) {
  Prng prng(73);
  for (unsigned kinds = 1; kinds < 8; ++kinds)
    for (const Epilogue epilogue : {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu,
                                    Epilogue::gelu_back}) {
      const Product p{.rows = 48,
                      .columns = prng.chance(1, 2) ? 64u : 37u,
                      .depth = prng.chance(1, 5) ? 0u : 40u,
                      .a_turned = prng.chance(1, 2),
                      .b_turned = prng.chance(1, 2),
                      .add = epilogue == Epilogue::none && prng.chance(1, 2),
                      .precision = Precision::bf16,
                      .epilogue = epilogue,
                      .a_bf16 = (kinds & 1) != 0,
                      .b_bf16 = (kinds & 2) != 0,
                      .y_bf16 = (kinds & 4) != 0};
      check(kinds, p, prng);
    }
}

BOOST_AUTO_TEST_CASE(rows_with_gaps_between_them) {
  Prng prng(74);
  for (unsigned turn = 0; turn < 12; ++turn) {
    const Precision precision = turn % 3 == 0 ? Precision::fp32 : Precision::bf16;
    check(turn,
          {.rows = 20 + turn,
           .columns = 37,
           .depth = turn == 5 ? 0u : 11u,
           .a_turned = turn % 2 == 1,
           .b_turned = turn % 4 > 1,
           .add = turn == 7,
           .precision = precision,
           .a_bf16 = turn % 3 == 1,
           .b_bf16 = turn % 3 == 1,
           .y_bf16 = turn % 3 == 2,
           .gap = 1 + turn % 4},
          prng);
  }
}

// A batch against its products one by one. Matrices of y lie behind each other or each in the gaps of the one before.
void check_batch(std::uint64_t order, Product p, std::uint32_t batch, bool beside, Prng& prng) {
  const Target target(order);
  if (!has_products(target)) return;
  MatmulArgs args = without_arrays(p);
  if (beside) args.y_stride = batch * p.columns;
  args.batch = batch;
  if (p.depth != 0) args.a_step = layout_of_a(args).extent() + p.gap;
  if (p.depth != 0 && p.gap != 1) args.b_step = layout_of_b(args).extent() + p.gap;  // or all have one b
  args.y_step = beside ? p.columns : layout_of_y(args).extent() + p.gap;
  const std::size_t skip = prng.below(4), y_size = layout_of_y(args).extent(batch, args.y_step);
  const Floats a = drawn(prng, p.depth == 0 ? 0 : layout_of_a(args).extent(batch, args.a_step)),
               b = drawn(prng, p.depth == 0 ? 0 : layout_of_b(args).extent(batch, args.b_step)),
               y = drawn(prng, y_size);
  const Either on_a(target, p.a_bf16, a, skip), on_b(target, p.b_bf16, b, skip), on_y(target, p.y_bf16, y, skip),
      one_by_one(target, p.y_bf16, y, skip);
  args.a = on_a.numbers();
  args.b = on_b.numbers();
  args.y = on_y.numbers();
  ErrorText error{};
  BOOST_TEST_REQUIRE((target.table().model.matmul(target.device(), &args, &error) == Status::ok), error.text);
  MatmulArgs one = args;
  one.batch = 1;
  for (std::uint32_t m = 0; m < batch; ++m) {
    one.a = args.a.from(m * args.a_step);
    one.b = args.b.from(m * args.b_step);
    one.y = one_by_one.numbers().from(m * args.y_step);
    BOOST_TEST_REQUIRE((target.table().model.matmul(target.device(), &one, &error) == Status::ok), error.text);
  }
  if (on_device())
    BOOST_TEST(distance(on_y.read(), one_by_one.read()) < tolerance(p));
  else
    BOOST_TEST(same_bits(on_y.read(), one_by_one.read()));
}

BOOST_AUTO_TEST_CASE(a_batch_is_its_products_one_by_one) {
  Prng prng(75);
  const std::uint32_t sizes[] = {1, 3, 8, 33, 64};
  for (std::uint32_t turn = 0; turn < 24; ++turn) {
    const bool bf16 = turn % 3 == 2;
    check_batch(turn % 5,
                {.rows = sizes[prng.below(5)],
                 .columns = sizes[prng.below(5)],
                 .depth = turn == 20 ? 0u : sizes[prng.below(5)],
                 .a_turned = turn % 2 == 1,
                 .b_turned = turn % 4 > 1,
                 .add = prng.chance(1, 3),
                 .precision = static_cast<Precision>(turn % 3),
                 .a_bf16 = bf16 && prng.chance(1, 2),
                 .b_bf16 = bf16 && prng.chance(1, 2),
                 .y_bf16 = bf16 && turn % 8 > 3,
                 .gap = static_cast<std::uint32_t>(prng.below(4))},
                1 + static_cast<std::uint32_t>(prng.below(4)), turn % 8 == 1 || turn % 8 == 6, prng);
  }
  // All aligned, as tensor cores like them.
  check_batch(0,
              {.rows = 64, .columns = 64, .depth = 64, .precision = Precision::bf16, .a_bf16 = true, .b_bf16 = true,
               .y_bf16 = true, .gap = 64},
              5, false, prng);
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
    const MatmulArgs args{1, 1, 1, a.data(), b.data(), false, false, false, y.data(), {}, {}, Precision::bf16,
                          Epilogue::none};
    ErrorText error{};
    BOOST_TEST_REQUIRE((target.table().model.matmul(target.device(), &args, &error) == Status::ok), error.text);
    const float got = y.read()[0];
    BOOST_TEST(same_bits({got}, {to[i]}), from[i] << " became " << got);
  }
}

BOOST_AUTO_TEST_SUITE_END()
