// The kernels of Muon and of steps of several mini-batches against the CPU's formulas, bit for bit.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "compress/select/scan_pass.h"
#include "gpu/device/scan_form.h"
#include "models/optimizers/newton_schulz.h"
#include "tests/gpu/models/model_support.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_optimizer_kernels)

namespace {

// Matrices of all kinds: empty, single, without and with gaps, more values than a grid has threads in the emulation.
constexpr MatrixLayout layouts[] = {{0, 5, 5}, {1, 1, 1},   {1, 7, 21},   {7, 1, 1},    {3, 5, 5},
                                    {4, 3, 6}, {65, 9, 27}, {33, 130, 130}, {200, 70, 71}};

std::size_t extent_of(const MatrixLayout& layout) {
  return layout.rows == 0 ? 0 : static_cast<std::size_t>(layout.extent());
}

constexpr std::size_t counts[] = {0, 1, 31, 256, 257, 5000};

}  // namespace

BOOST_AUTO_TEST_CASE(momentum_and_the_look_ahead_of_a_matrix) {
  Prng prng(131);
  std::uint64_t order = 0;
  for (const MatrixLayout& layout : layouts) {
    const Target target(order++ % 5);
    const std::size_t skip = prng.below(4);
    const Floats gradient = drawn_wild(prng, extent_of(layout));
    Floats kept = drawn_wild(prng, extent_of(layout)), ahead(std::size_t{layout.rows} * layout.columns);
    const Guarded<float> on_gradient(target, gradient, skip), on_kept(target, kept, skip),
        on_ahead(target, ahead.size(), skip);
    target.table().optimizers.look_ahead(target.device(), layout, 0.95f, on_gradient.data(), on_kept.data(),
                                         on_ahead.data());
    for (std::size_t row = 0; row < layout.rows; ++row)
      for (std::size_t column = 0; column < layout.columns; ++column) {
        const std::size_t at = row * layout.stride + column;
        kept[at] = 0.95f * kept[at] + gradient[at];
        ahead[row * layout.columns + column] = gradient[at] + 0.95f * kept[at];
      }
    BOOST_TEST(same_bits(on_kept.read(), kept));  // what is between the rows stays
    BOOST_TEST(same_bits(on_ahead.read(), ahead));
    BOOST_TEST(same_bits(on_gradient.read(), gradient));
  }
}

// Also for a norm that counts as zero, and for one that is no number.
BOOST_AUTO_TEST_CASE(scaling_to_a_norm_of_one) {
  Prng prng(132);
  std::uint64_t order = 0;
  for (const std::size_t count : counts)
    for (const double squares : {2.5, 1e-40, 0.0, 0.99e-60, 1.01e-60, 1e70, std::nan("")}) {
      const Target target(order++ % 5);
      Floats x = drawn(prng, count);
      const Guarded<float> on_x(target, x, prng.below(4));
      const Guarded<double> on_squares(target, std::vector<double>{squares});
      target.table().optimizers.scale_to_one(target.device(), count, models::newton_norm_min, on_squares.data(),
                                             on_x.data());
      const double norm = std::sqrt(squares);
      const auto scale = norm < models::newton_norm_min ? 0.0f : static_cast<float>(1 / norm);
      for (float& value : x) value *= scale;
      BOOST_TEST(same_bits(on_x.read(), x));
    }
}

BOOST_AUTO_TEST_CASE(a_polynomial_of_a_matrix_and_its_square) {
  Prng prng(133);
  for (const std::uint32_t order : {0u, 1u, 2u, 33u, 70u}) {
    const Target target(order % 5);
    const std::size_t count = std::size_t{order} * order;
    const Floats gram = drawn(prng, count);
    Floats square = drawn(prng, count);
    const Guarded<float> on_gram(target, gram, prng.below(4)), on_square(target, square, prng.below(4));
    target.table().optimizers.quadratic(target.device(), order, {3.5f, -4.25f, 2.125f}, on_gram.data(),
                                        on_square.data());
    for (std::size_t i = 0; i < count; ++i) square[i] = -4.25f * gram[i] + 2.125f * square[i];
    for (std::size_t i = 0; i < order; ++i) square[i * order + i] += 3.5f;
    BOOST_TEST(same_bits(on_square.read(), square));
    BOOST_TEST(same_bits(on_gram.read(), gram));
  }
}

BOOST_AUTO_TEST_CASE(weights_with_a_multiple_of_a_change) {
  Prng prng(134);
  for (const std::size_t count : counts)
    for (const float factor : {1.0f, 3.0f}) {
      const Target target(count % 5);
      const Floats from = drawn_wild(prng, count), change = drawn_wild(prng, count);
      Floats to(count);
      const Guarded<float> on_from(target, from, prng.below(4)), on_change(target, change, prng.below(4)),
          on_to(target, count, prng.below(4));
      target.table().optimizers.add_share(target.device(), count, on_from.data(), factor, on_change.data(),
                                          on_to.data());
      for (std::size_t i = 0; i < count; ++i) to[i] = from[i] + factor * change[i];
      BOOST_TEST(same_bits(on_to.read(), to));
    }
}

// A scan without room for candidates adds a step to an array; what is not finite is noted all the same.
BOOST_AUTO_TEST_CASE(a_direction_and_decay_added_without_candidates) {
  Prng prng(135);
  for (const std::uint32_t size : {1u, 5u, 8191u, 8192u, 20000u}) {
    const Target target(size % 5);
    const std::size_t skip = size % 2 == 0 ? 0 : prng.below(4);
    const StepRule rule{.factor = -0.03f, .decay = -0.001f};
    const Floats direction = drawn(prng, size), weights = drawn(prng, size);
    Floats change = drawn(prng, size);
    change[size / 2] = size == 5 ? std::numeric_limits<float>::infinity() : 1.0f;
    const Guarded<float> on_change(target, change, skip), on_direction(target, direction, skip),
        on_weights(target, weights, skip);
    const Guarded<Tile> tiles(target, scan_tiles_of(size));
    const Guarded<Selection> selection(target, 1);
    ScanArgs args{};
    args.residual = on_change.data();
    args.change = on_direction.data();
    args.params = size;
    args.cutoff = compress::infinity_bits;
    args.tiles = tiles.data();
    args.selection = selection.data();
    args.form = Change::sgdw;
    args.rule = rule;
    args.rule.weights = on_weights.data();
    target.table().scan(target.device(), &args);
    for (std::size_t i = 0; i < size; ++i) change[i] += step_rule::sgdw(rule, direction[i], weights[i]);
    BOOST_TEST(same_bits(on_change.read(), change));
    BOOST_TEST(selection.read()[0].first_not_finite == (size == 5 ? 2u : no_position));
    tiles.read();
  }
}

BOOST_AUTO_TEST_SUITE_END()
