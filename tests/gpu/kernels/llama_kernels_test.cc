// The kernels of a Llama, of floats and of bfloat16: the bits of the CPU's on the same numbers, rounded where they are
// written.
#include <boost/test/unit_test.hpp>

#include "models/layers/rms_norm.h"
#include "models/layers/rotary.h"
#include "tests/gpu/models/model_support.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_llama_kernels)

namespace {

constexpr Size sizes[] = {{0, 5},  {5, 0},   {1, 1},   {1, 16},  {2, 15},  {3, 17},
                          {64, 3}, {65, 40}, {9, 257}, {130, 8}, {3, 64}, {2, 2100}};

struct RotaryShape {
  std::uint32_t batch, context, heads, groups, head_size;
  std::uint32_t rows() const { return batch * context; }
  std::size_t row() const { return std::size_t{heads + 2 * groups} * head_size; }
};

template <class Number>
void check_rms_norm(std::uint64_t seed) {
  each_size(seed, sizes, [](const Target& target, Size size, Prng& prng, std::size_t skip) {
    if (size.columns == 0) return;
    const bool sums = prng.chance(1, 2), rounds = prng.chance(1, 2);
    const float epsilon = prng.chance(1, 2) ? 1e-5f : 1e-2f;
    const Floats x = drawn(prng, size.count(), 3), more = drawn(prng, size.count()), gain = drawn(prng, size.columns);
    Floats normed = x, expected(size.count());
    if (sums) cpu().add(static_cast<long>(x.size()), x.data(), more.data(), normed.data());
    models::RmsNorm norm;
    norm.forward(nullptr, size.rows, size.columns, epsilon, normed.data(), gain.data(), expected.data());
    const Guarded<float> on_x(target, x, skip), on_more(target, more, skip), sum(target, size.count(), skip),
        on_gain(target, gain), scale(target, size.rows);
    const Guarded<Number> y(target, size.count(), skip);
    const RmsNormArgs args{size.matrix(),  on_x.data(), sums ? on_more.data() : nullptr, sum.data(),
                           on_gain.data(), epsilon,     y.data(),                        scale.data()};
    target.table().llama.rms_norm(target.device(), &args);
    BOOST_TEST(same_bits(floats_of(y.read()), rounded_as<Number>(expected)));
    if (sums) BOOST_TEST(same_bits(sum.read(), normed));
    BOOST_TEST(same_bits(on_x.read(), x));

    const Floats change = rounded_as<Number>(drawn(prng, size.count()));
    Floats x_change = drawn(prng, size.count()), gain_change(size.columns);
    const Guarded<float> on_x_change(target, x_change, skip),
        partial(target, chunks_of(size.rows) * size.columns, skip), on_gain_change(target, size.columns, skip);
    const Guarded<Number> on_change(target, numbers_of<Number>(change), skip);
    const Guarded<Bf16> rounded(target, size.count(), skip);
    const RmsNormChange back{size.matrix(),    sums ? sum.data() : on_x.data(), on_gain.data(),
                             scale.data(),     on_change.data(),                on_x_change.data(),
                             rounds ? rounded.data() : nullptr, partial.data(), on_gain_change.data()};
    target.table().llama.rms_norm_backward(target.device(), &back);
    norm.backward(nullptr, size.rows, size.columns, normed.data(), gain.data(), change.data(), x_change.data(),
                  gain_change.data());
    BOOST_TEST(same_bits(on_x_change.read(), x_change));
    BOOST_TEST(same_bits(on_gain_change.read(), gain_change));
    if (rounds) BOOST_TEST(same_bits(floats_of(rounded.read()), rounded_as<Bf16>(x_change)));
    partial.read();
    scale.read();
  });
}

// Adds a bias to each row, then turns, on the CPU.
Floats turned(RotaryShape s, const models::Rotary& rotary, Floats qkv, const Floats& bias, bool back) {
  const auto rows = static_cast<long>(s.rows()), row = static_cast<long>(s.row());
  if (!bias.empty()) cpu().add_row(rows, row, qkv.data(), bias.data(), qkv.data());
  if (back)
    rotary.backward(nullptr, rows, s.heads + s.groups, qkv.data(), row);
  else
    rotary.forward(nullptr, rows, s.heads + s.groups, qkv.data(), row);
  return qkv;
}

template <class Number>
void check_rotary(Prng& prng) {
  std::uint64_t order = 0;
  for (const RotaryShape s : {RotaryShape{0, 4, 2, 1, 4}, RotaryShape{2, 5, 1, 1, 2}, RotaryShape{1, 9, 4, 2, 6},
                              RotaryShape{3, 4, 3, 1, 16}, RotaryShape{1, 7, 2, 2, 34}, RotaryShape{2, 3, 6, 2, 64},
                              RotaryShape{1, 2, 12, 3, 128}}) {
    const Target target(order);
    const std::size_t skip = order % 3 == 0 ? 0 : prng.below(4);
    const models::RotaryScaling scaling{models::RotaryScaling::Kind::llama3, 8, 1, 4, 4};
    const models::Rotary rotary(s.context, s.head_size, 100, order % 2 == 0 ? scaling : models::RotaryScaling{});
    const Floats qkv = rounded_as<Number>(drawn(prng, s.rows() * s.row()));
    const Floats bias = order++ % 2 == 0 ? drawn(prng, s.row()) : Floats();
    const Guarded<float> cosine(target, Floats(rotary.cosine().begin(), rotary.cosine().end()), skip),
        sine(target, Floats(rotary.sine().begin(), rotary.sine().end())), on_bias(target, bias, skip);
    const Guarded<Number> x(target, numbers_of<Number>(qkv), skip);
    RotaryArgs args{s.rows(),      s.context,   s.heads, s.groups, s.head_size,
                    cosine.data(), sine.data(), {},      {},       {},          x.data()};
    if (!bias.empty()) {
      args.query_bias = on_bias.data();
      args.key_bias = args.query_bias + s.heads * s.head_size;
      args.value_bias = args.key_bias + s.groups * s.head_size;
    }
    target.table().llama.rotary(target.device(), &args);
    BOOST_TEST(same_bits(floats_of(x.read()), rounded_as<Number>(turned(s, rotary, qkv, bias, false))));
    x.write(numbers_of<Number>(qkv));
    target.table().llama.rotary_backward(target.device(), &args);
    BOOST_TEST(same_bits(floats_of(x.read()), rounded_as<Number>(turned(s, rotary, qkv, {}, true))));
  }
}

template <class Number>
void check_swiglu(std::uint64_t seed) {
  each_size(seed, sizes, [](const Target& target, Size size, Prng& prng, std::size_t skip) {
    const Floats gate = rounded_as<Number>(drawn_wild(prng, size.count())),
                 up = rounded_as<Number>(drawn_wild(prng, size.count())),
                 change = rounded_as<Number>(drawn(prng, size.count()));
    Floats x, y(size.count()), gate_change(size.count()), up_change(size.count()), x_change;
    const auto count = static_cast<long>(size.count());
    cpu().swiglu(count, gate.data(), up.data(), y.data());
    cpu().swiglu_backward(count, gate.data(), up.data(), change.data(), gate_change.data(), up_change.data());
    for (std::size_t row = 0; row < size.rows; ++row) {
      const auto append = [&](Floats& to, const Floats& from) {
        const auto begin = from.begin() + static_cast<std::ptrdiff_t>(row * size.columns);
        to.insert(to.end(), begin, begin + size.columns);
      };
      append(x, gate);
      append(x, up);
      append(x_change, gate_change);
      append(x_change, up_change);
    }
    const Guarded<Number> on_x(target, numbers_of<Number>(x), skip), on_y(target, size.count(), skip),
        on_change(target, numbers_of<Number>(change), skip), on_x_change(target, x.size(), skip);
    target.table().llama.swiglu(target.device(), size.matrix(), on_x.data(), on_y.data());
    target.table().llama.swiglu_backward(target.device(), size.matrix(), on_x.data(), on_change.data(),
                                         on_x_change.data());
    BOOST_TEST(same_bits(floats_of(on_y.read()), rounded_as<Number>(y)));
    BOOST_TEST(same_bits(floats_of(on_x_change.read()), rounded_as<Number>(x_change)));
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(rms_norm_with_and_without_a_sum) {
  check_rms_norm<float>(71);
  check_rms_norm<Bf16>(72);
}

// The residual stream: the sum takes the place of what was added.
BOOST_AUTO_TEST_CASE(a_sum_in_place) {
  Prng prng(73);
  const Target target(4);
  constexpr Size size{9, 50};
  const Floats x = drawn(prng, size.count()), more = drawn(prng, size.count()), gain(50, 1.0f);
  const Guarded<float> on_x(target, x), on_more(target, more), on_gain(target, gain), y(target, size.count()),
      scale(target, 9);
  const RmsNormArgs args{size.matrix(),  on_x.data(), on_more.data(), on_more.data(),
                         on_gain.data(), 1e-5f,       y.data(),       scale.data()};
  target.table().llama.rms_norm(target.device(), &args);
  Floats sum = x;
  cpu().add(static_cast<long>(sum.size()), sum.data(), more.data(), sum.data());
  BOOST_TEST(same_bits(on_more.read(), sum));
}

BOOST_AUTO_TEST_CASE(rotary_positions_with_and_without_biases) {
  Prng prng(74);
  check_rotary<float>(prng);
  check_rotary<Bf16>(prng);
}

BOOST_AUTO_TEST_CASE(swiglu_forward_and_back) {
  check_swiglu<float>(75);
  check_swiglu<Bf16>(76);
}

BOOST_AUTO_TEST_SUITE_END()
