// Causal attention on tiles against models/layers/attention.h, forward and back, of floats and of bfloat16: within the
// tolerances of gpu/README.md, and the same bits in any order of blocks and threads.
#include <boost/test/unit_test.hpp>

#include "models/layers/attention.h"
#include "tests/gpu/kernels/numbers.h"
#include "tests/gpu/target.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_attention)

namespace {

struct Shape {
  std::uint32_t batch, context, heads, head_size;
  std::uint32_t groups = 0;  // heads of keys and values; 0: as many as of queries
  std::size_t rows() const { return std::size_t{batch} * context; }
  std::size_t width() const { return std::size_t{heads} * head_size; }
  std::uint32_t key_heads() const { return groups != 0 ? groups : heads; }
  std::size_t row() const { return width() + std::size_t{2} * head_size * key_heads(); }
  std::size_t statistics() const { return std::size_t{batch} * heads * context; }
};

struct Outcome {
  Floats y, top, weight, qkv_change;
};

template <class Number>
Outcome on_target(std::uint64_t order, Shape s, const Floats& qkv, const Floats& change, std::size_t skip) {
  const Target target(order);
  const std::size_t d = s.rows() * s.width();
  const Guarded<Number> on_qkv(target, numbers_of<Number>(qkv), skip), y(target, d, skip),
      on_change(target, numbers_of<Number>(change), skip), qkv_change(target, s.rows() * s.row(), skip);
  const Guarded<float> top(target, s.statistics(), skip), weight(target, s.statistics()),
      dot(target, 2 * s.statistics());
  const AttentionArgs args{s.batch,       s.context, s.heads,    s.head_size,
                           on_qkv.data(), y.data(),  top.data(), weight.data(),
                           s.groups};
  target.table().model.attention(target.device(), &args);
  const AttentionChange back{args, on_change.data(), dot.data(), qkv_change.data()};
  target.table().model.attention_backward(target.device(), &back);
  dot.read();
  return {floats_of(y.read()), top.read(), weight.read(), floats_of(qkv_change.read())};
}

template <class Number>
void check(Prng& prng, double tolerance, const std::vector<Shape>& shapes) {
  std::uint64_t order = 0;
  for (const Shape s : shapes) {
    const std::size_t d = s.rows() * s.width();
    const double size = order % 3 == 2 ? 6 : 1;  // softmax from nearly even to nearly one
    const Floats qkv = rounded_as<Number>(drawn(prng, s.rows() * s.row(), size));
    const Floats change = rounded_as<Number>(drawn(prng, d));
    const Outcome got = on_target<Number>(order, s, qkv, change, order % 2 == 0 ? 0 : prng.below(4));
    ++order;
    if (d > 0) {
      models::Attention attention;
      const models::Attention::Shape shape{s.batch, s.context, s.heads, s.head_size, s.key_heads()};
      Floats y(d), qkv_change(qkv.size());
      attention.forward(nullptr, shape, qkv.data(), y.data());
      attention.backward(nullptr, shape, qkv.data(), y.data(), change.data(), qkv_change.data());
      BOOST_TEST(distance(got.y, y) < tolerance);
      BOOST_TEST(distance(got.qkv_change, qkv_change) < tolerance);
    }
    if (s.context > 64) continue;  // enough
    const Outcome again = on_target<Number>(order + 50, s, qkv, change, 0);
    BOOST_TEST(same_bits(again.y, got.y));
    BOOST_TEST(same_bits(again.top, got.top));
    BOOST_TEST(same_bits(again.weight, got.weight));
    BOOST_TEST(same_bits(again.qkv_change, got.qkv_change));
  }
}

// Heads that share keys and values, whole heads and others, and as many groups as heads.
const std::vector<Shape> grouped = {{0, 3, 4, 4, 2},  {1, 1, 2, 2, 1},   {2, 5, 4, 6, 2},   {1, 66, 4, 16, 2},
                                    {1, 33, 3, 34, 1}, {1, 66, 2, 72, 1}, {1, 9, 2, 128, 1}, {2, 4, 3, 8, 3}};

// Positions that a position may not see change no bit of its result.
template <class Number>
void check_that_what_comes_later_is_not_seen() {
  Prng prng(62);
  constexpr Shape s{1, 50, 1, 8};
  Floats qkv = drawn(prng, 3 * s.rows() * s.width());
  const Floats change(s.rows() * s.width(), 0.0f);
  const Outcome before = on_target<Number>(0, s, qkv, change, 0);
  for (std::size_t i = 40 * 3 * s.width(); i < qkv.size(); ++i) qkv[i] = -2 * qkv[i];
  const Outcome after = on_target<Number>(0, s, qkv, change, 0);
  const auto first = [&](const Floats& y) { return Floats(y.begin(), y.begin() + 40 * 8); };
  BOOST_TEST(same_bits(first(before.y), first(after.y)));
  BOOST_TEST(!same_bits(before.y, after.y));
}

}  // namespace

BOOST_AUTO_TEST_CASE(attention_is_that_of_the_cpu) {
  Prng prng(61);
  check<float>(prng, 2e-5,
               {{0, 3, 2, 4}, {2, 0, 1, 8}, {1, 1, 1, 1}, {2, 2, 3, 3}, {1, 31, 2, 16}, {2, 33, 1, 17}, {1, 64, 2, 32},
                {1, 70, 2, 33}, {1, 97, 1, 64}, {1, 40, 1, 100}, {1, 34, 1, 128}});
}

// More than a tile, a warp's stripes and a block of rows; heads that are whole vectors, and others.
BOOST_AUTO_TEST_CASE(attention_of_bfloat16_is_that_of_the_cpu) {
  Prng prng(63);
  check<Bf16>(prng, 1e-2,
              {{0, 3, 2, 4}, {2, 0, 1, 8}, {1, 1, 1, 1}, {2, 2, 3, 3}, {1, 31, 2, 16}, {2, 33, 1, 17}, {1, 64, 2, 32},
               {1, 65, 1, 8}, {1, 70, 2, 33}, {1, 150, 1, 64}, {1, 40, 1, 100}, {1, 34, 2, 128}, {1, 130, 1, 72}});
}

BOOST_AUTO_TEST_CASE(attention_of_grouped_heads_is_that_of_the_cpu) {
  Prng prng(64);
  check<float>(prng, 2e-5, grouped);
  check<Bf16>(prng, 1e-2, grouped);
}

// The bits of grouped heads are those of heads of their own with the same keys and values.
BOOST_AUTO_TEST_CASE(grouped_heads_look_as_heads_of_their_own) {
  Prng prng(65);
  constexpr Shape shared{1, 50, 4, 8, 2}, own{1, 50, 4, 8};
  const Floats qkv = drawn(prng, shared.rows() * shared.row()), change = drawn(prng, own.rows() * own.width());
  Floats repeated;
  for (std::size_t row = 0; row < own.rows(); ++row) {
    const float* const from = qkv.data() + row * shared.row();
    repeated.insert(repeated.end(), from, from + own.width());
    for (const std::size_t head : {4, 4, 5, 5, 6, 6, 7, 7})
      repeated.insert(repeated.end(), from + 8 * head, from + 8 * head + 8);
  }
  const Outcome a = on_target<float>(3, shared, qkv, change, 0), b = on_target<float>(4, own, repeated, change, 0);
  BOOST_TEST(same_bits(a.y, b.y));
  BOOST_TEST(same_bits(a.top, b.top));
  BOOST_TEST(same_bits(a.weight, b.weight));
  for (std::size_t row = 0; row < own.rows(); ++row) {
    const float *const x = a.qkv_change.data() + row * shared.row(), *const y = b.qkv_change.data() + row * own.row();
    BOOST_TEST(std::equal(x, x + own.width(), y));
  }
}

BOOST_AUTO_TEST_CASE(what_comes_later_is_not_seen) {
  check_that_what_comes_later_is_not_seen<float>();
  check_that_what_comes_later_is_not_seen<Bf16>();
}

BOOST_AUTO_TEST_SUITE_END()
