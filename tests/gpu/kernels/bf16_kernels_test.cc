// The kernels of models on bfloat16: the bits of the CPU's on the same numbers, rounded where they are written.
#include <boost/test/unit_test.hpp>

#include "models/layers/layer_norm.h"
#include "tests/gpu/models/model_support.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_bf16_kernels)

namespace {

constexpr Size sizes[] = {{0, 5},   {1, 1},   {3, 17},   {63, 40},  {64, 3},
                          {9, 257}, {3, 768}, {2, 1021}, {9, 1024}, {2, 1300}};

}  // namespace

BOOST_AUTO_TEST_CASE(floats_are_rounded) {
  each_size(51, sizes, [](const Target& target, Size size, Prng& prng, std::size_t skip) {
    const Floats x = drawn(prng, size.count(), 1000);
    const Guarded<float> on_x(target, x, skip);
    const Guarded<Bf16> rounded(target, size.count(), skip);
    target.table().model.round(target.device(), size.count(), on_x.data(), rounded.data());
    BOOST_TEST(same_bits(floats_of(rounded.read()), rounded_as<Bf16>(x)));
  });
}

BOOST_AUTO_TEST_CASE(gelu_backward_and_sums_of_columns) {
  each_size(52, sizes, [](const Target& target, Size size, Prng& prng, std::size_t skip) {
    const Floats x = rounded_as<Bf16>(drawn(prng, size.count(), 4));
    Floats change = rounded_as<Bf16>(drawn(prng, size.count()));
    const Guarded<Bf16> on_x(target, numbers_of<Bf16>(x), skip), on_change(target, numbers_of<Bf16>(change), skip);
    const ModelTable& model = target.table().model;
    model.gelu_backward(target.device(), size.count(), on_x.data(), on_change.data());
    cpu().gelu_backward(static_cast<long>(size.count()), x.data(), change.data());
    BOOST_TEST(same_bits(floats_of(on_change.read()), rounded_as<Bf16>(change)));

    const Guarded<float> partial(target, chunks_of(size.rows) * size.columns, skip), sum(target, size.columns, skip);
    model.column_sums(target.device(), size.matrix(), on_x.data(), partial.data(), sum.data());
    Floats expected(size.columns);
    cpu().column_sums(size.rows, size.columns, x.data(), size.columns, expected.data());  // a chunk at most
    BOOST_TEST(same_bits(sum.read(), expected));
  });
}

BOOST_AUTO_TEST_CASE(layer_norm_into_and_from_bfloat16) {
  each_size(53, sizes, [](const Target& target, Size size, Prng& prng, std::size_t skip) {
    const Floats x = drawn(prng, size.count(), 3), gain = drawn(prng, size.columns), bias = drawn(prng, size.columns),
                 change = rounded_as<Bf16>(drawn(prng, size.count()));
    Floats y(size.count()), x_change = drawn(prng, size.count()), gain_change(size.columns), bias_change(size.columns);
    const Guarded<float> on_x(target, x, skip), on_gain(target, gain), on_bias(target, bias), mean(target, size.rows),
        scale(target, size.rows), on_x_change(target, x_change, skip),
        partial(target, chunks_of(size.rows) * 2 * size.columns), on_gain_change(target, size.columns),
        on_bias_change(target, size.columns);
    const Guarded<Bf16> on_y(target, size.count(), skip), on_change(target, numbers_of<Bf16>(change), skip),
        rounded(target, size.count(), skip);
    models::LayerNorm norm;
    norm.forward(nullptr, size.rows, size.columns, x.data(), gain.data(), bias.data(), y.data());
    norm.backward(nullptr, size.rows, size.columns, x.data(), gain.data(), change.data(), x_change.data(),
                  gain_change.data(), bias_change.data());
    const LayerNormArgs args{size.matrix(), on_x.data(), nullptr,     nullptr,     on_gain.data(), on_bias.data(),
                             on_y.data(), mean.data(), scale.data()};
    target.table().model.layer_norm(target.device(), &args);
    BOOST_TEST(same_bits(floats_of(on_y.read()), rounded_as<Bf16>(y)));
    const LayerNormChange back{size.matrix(), on_x.data(),           on_gain.data(),       mean.data(),
                               scale.data(),   on_change.data(),      on_x_change.data(),   rounded.data(),
                               partial.data(), on_gain_change.data(), on_bias_change.data()};
    target.table().model.layer_norm_backward(target.device(), &back);
    BOOST_TEST(same_bits(on_x_change.read(), x_change));
    BOOST_TEST(same_bits(floats_of(rounded.read()), rounded_as<Bf16>(x_change)));
    BOOST_TEST(same_bits(on_gain_change.read(), gain_change));
    BOOST_TEST(same_bits(on_bias_change.read(), bias_change));
  });
}

namespace {

// Losses and gradients are those of the same logits as floats without gaps. Gaps hold no numbers before, zeros after.
template <class Number>
void compare_with_gaps(const Target& target, Size size, Prng& prng, std::size_t skip, float share, std::uint32_t gap) {
  const Floats x = rounded_as<Bf16>(drawn(prng, size.count(), 8));
  std::vector<std::uint16_t> wanted(size.rows);
  for (std::uint16_t& one : wanted) one = static_cast<std::uint16_t>(prng.below(size.columns));
  const Guarded<float> on_x(target, x), loss(target, size.rows), other_loss(target, size.rows);
  const MatrixLayout layout{size.rows, size.columns, size.columns + gap};
  const Floats spread = with_gaps(x, layout);
  const Guarded<Number> apart(target, numbers_of<Number>(spread), skip);
  const Guarded<std::uint16_t> on_wanted(target, wanted);
  const Guarded<double> total(target, 1), other_total(target, 1);
  const CrossEntropyArgs args{size.matrix(), on_x.data(), on_wanted.data(), share, loss.data(), total.data()};
  const CrossEntropyArgs other{size.matrix(),     apart.data(),       on_wanted.data(), share,
                               other_loss.data(), other_total.data(), layout.stride};
  target.table().model.cross_entropy(target.device(), &args);
  target.table().model.cross_entropy(target.device(), &other);
  BOOST_TEST(distance(other_loss.read(), loss.read()) < 1e-5);
  BOOST_TEST(std::abs(other_total.read()[0] - total.read()[0]) <= 1e-5 * std::abs(total.read()[0]));
  const Floats got = floats_of(apart.read());
  if (!(share > 0)) {
    BOOST_TEST(same_bits(got, spread));
    return;
  }
  const double grain = std::is_same_v<Number, Bf16> ? 4e-3 : 1e-5;
  BOOST_TEST(distance(without_gaps(got, layout), on_x.read()) < grain);
  BOOST_TEST(same_bits(got, with_gaps(without_gaps(got, layout), layout, 0.0f)));
}

}  // namespace

BOOST_AUTO_TEST_CASE(cross_entropy_of_rows_with_gaps) {
  each_size(54, sizes, [](const Target& target, Size size, Prng& prng, std::size_t skip) {
    for (const float share : {0.125f, 0.0f})
      for (const std::uint32_t gap : {0u, 1u, 47u, 64 - size.columns % 64}) {
        compare_with_gaps<float>(target, size, prng, skip / 2 * 4, share, gap);
        compare_with_gaps<Bf16>(target, size, prng, skip / 2 * 8, share, gap);
        compare_with_gaps<Bf16>(target, size, prng, skip, share, gap);
      }
  });
}

// A vocabulary's rows: the registers of a block have room for some, not for others.
BOOST_AUTO_TEST_CASE(cross_entropy_of_long_rows) {
  constexpr Size long_rows[] = {{2, 8192}, {2, 8193}, {2, 20011}, {2, 50257}, {1, 60000}};
  each_size(55, long_rows, [](const Target& target, Size size, Prng& prng, std::size_t) {
    compare_with_gaps<float>(target, size, prng, 0, 0.5f, 64 - size.columns % 64);
    compare_with_gaps<Bf16>(target, size, prng, 0, 0.5f, 64 - size.columns % 64);
  });
}

BOOST_AUTO_TEST_SUITE_END()
