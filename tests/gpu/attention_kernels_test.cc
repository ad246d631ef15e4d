// Causal attention on tiles against models/attention.h, forward and back: within the tolerance of gpu/README.md, and
// the same bits in any order of blocks and threads.
#include <boost/test/unit_test.hpp>

#include "models/attention.h"
#include "tests/gpu/numbers.h"
#include "tests/gpu/target.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_attention)

namespace {

constexpr double tolerance = 2e-5;

struct Shape {
  std::uint32_t batch, context, heads, head_size;
  std::size_t rows() const { return std::size_t{batch} * context; }
  std::size_t width() const { return std::size_t{heads} * head_size; }
  std::size_t statistics() const { return std::size_t{batch} * heads * context; }
};

struct Outcome {
  Floats y, top, weight, qkv_change;
};

Outcome on_target(std::uint64_t order, Shape s, const Floats& qkv, const Floats& change, std::size_t skip) {
  const Target target(order);
  const std::size_t d = s.rows() * s.width();
  const Guarded<float> on_qkv(target, qkv, skip), y(target, d, skip), top(target, s.statistics(), skip),
      weight(target, s.statistics()), on_change(target, change, skip), dot(target, s.statistics()),
      qkv_change(target, 3 * d, skip);
  const AttentionArgs args{s.batch,       s.context, s.heads,    s.head_size,
                           on_qkv.data(), y.data(),  top.data(), weight.data()};
  target.table().model.attention(target.device(), &args);
  const AttentionChange back{args, on_change.data(), dot.data(), qkv_change.data()};
  target.table().model.attention_backward(target.device(), &back);
  dot.read();
  return {y.read(), top.read(), weight.read(), qkv_change.read()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(attention_is_that_of_the_cpu) {
  Prng prng(61);
  std::uint64_t order = 0;
  for (const Shape s : {Shape{0, 3, 2, 4}, Shape{2, 0, 1, 8}, Shape{1, 1, 1, 1}, Shape{2, 2, 3, 3}, Shape{1, 31, 2, 16},
                        Shape{2, 33, 1, 17}, Shape{1, 64, 2, 32}, Shape{1, 70, 2, 33}, Shape{1, 97, 1, 64},
                        Shape{1, 40, 1, 100}, Shape{1, 34, 1, 128}}) {
    const std::size_t d = s.rows() * s.width();
    const double size = order % 3 == 2 ? 6 : 1;  // softmax from nearly even to nearly one
    const Floats qkv = drawn(prng, 3 * d, size), change = drawn(prng, d);
    const Outcome got = on_target(order++, s, qkv, change, prng.below(4));
    if (d > 0) {
      models::Attention attention;
      const models::Attention::Shape shape{s.batch, s.context, s.heads, s.head_size};
      Floats y(d), qkv_change(3 * d);
      attention.forward(nullptr, shape, qkv.data(), y.data());
      attention.backward(nullptr, shape, qkv.data(), y.data(), change.data(), qkv_change.data());
      BOOST_TEST(distance(got.y, y) < tolerance);
      BOOST_TEST(distance(got.qkv_change, qkv_change) < tolerance);
    }
    if (s.context > 64) continue;  // enough
    const Outcome again = on_target(order + 50, s, qkv, change, 0);
    BOOST_TEST(same_bits(again.y, got.y));
    BOOST_TEST(same_bits(again.top, got.top));
    BOOST_TEST(same_bits(again.weight, got.weight));
    BOOST_TEST(same_bits(again.qkv_change, got.qkv_change));
  }
}

// What a position may not see changes nothing of it, not one bit.
BOOST_AUTO_TEST_CASE(what_comes_later_is_not_seen) {
  Prng prng(62);
  constexpr Shape s{1, 50, 1, 8};
  Floats qkv = drawn(prng, 3 * s.rows() * s.width());
  const Floats change(s.rows() * s.width(), 0.0f);
  const Outcome before = on_target(0, s, qkv, change, 0);
  for (std::size_t i = 40 * 3 * s.width(); i < qkv.size(); ++i) qkv[i] = -2 * qkv[i];
  const Outcome after = on_target(0, s, qkv, change, 0);
  const auto first = [&](const Floats& y) { return Floats(y.begin(), y.begin() + 40 * 8); };
  BOOST_TEST(same_bits(first(before.y), first(after.y)));
  BOOST_TEST(!same_bits(before.y, after.y));
}

BOOST_AUTO_TEST_SUITE_END()
