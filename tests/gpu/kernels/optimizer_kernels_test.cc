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

// Some matrices of a layout: one; the next in the gaps of the first, where it fits there; behind each other.
std::vector<MatrixGroup> groups_of(const MatrixLayout& layout) {
  std::vector<MatrixGroup> groups{{layout, 1, 0}, {layout, 3, std::uint64_t{layout.rows} * layout.stride + 5}};
  const std::uint32_t beside = layout.stride / layout.columns;
  if (beside > 1) groups.push_back({layout, beside, layout.columns});
  return groups;
}

std::size_t extent_of(const MatrixGroup& group) {
  return group.layout.rows == 0 ? 0 : static_cast<std::size_t>(group.layout.extent(group.count, group.step));
}

// work(target, group, prng, skip) for each group, each with another order and alignment.
template <class Work>
void each_group(std::uint64_t seed, const Work& work) {
  Prng prng(seed);
  std::uint64_t order = 0;
  for (const MatrixLayout& layout : layouts)
    for (const MatrixGroup& group : groups_of(layout)) {
      const Target target(order++ % 5);
      work(target, group, prng, prng.below(4));
    }
}

// one(place in the group, matrix) for all numbers, matrix by matrix.
template <class One>
void each_number(const MatrixGroup& group, const One& one) {
  for (std::uint32_t m = 0; m < group.count; ++m)
    for (std::size_t row = 0; row < group.layout.rows; ++row)
      for (std::size_t column = 0; column < group.layout.columns; ++column)
        one(m * group.step + row * group.layout.stride + column, m);
}

constexpr std::size_t counts[] = {0, 1, 31, 256, 257, 5000};

}  // namespace

BOOST_AUTO_TEST_CASE(momentum_and_the_look_ahead_of_matrices) {
  each_group(131, [](const Target& target, const MatrixGroup& group, Prng& prng, std::size_t skip) {
    Floats gradient = drawn_wild(prng, extent_of(group)), kept = drawn_wild(prng, extent_of(group));
    const Guarded<float> on_gradient(target, gradient, skip), on_kept(target, kept, skip);
    target.table().optimizers.look_ahead(target.device(), group, 0.95f, on_gradient.data(), on_kept.data());
    each_number(group, [&](std::size_t at, std::uint32_t) {
      kept[at] = 0.95f * kept[at] + gradient[at];
      gradient[at] = gradient[at] + 0.95f * kept[at];
    });
    BOOST_TEST(same_bits(on_kept.read(), kept));  // what is between the rows stays
    BOOST_TEST(same_bits(on_gradient.read(), gradient));
  });
}

// Each has the bits of ModelTable::square_sum of its numbers.
BOOST_AUTO_TEST_CASE(sums_of_the_squares_of_matrices) {
  each_group(136, [](const Target& target, const MatrixGroup& group, Prng& prng, std::size_t skip) {
    const Floats x = drawn(prng, extent_of(group));
    const std::size_t partials = square_partials(group.numbers());
    std::vector<Floats> apart(group.count);
    each_number(group, [&](std::size_t at, std::uint32_t m) { apart[m].push_back(x[at]); });
    const Guarded<float> on_x(target, x, skip);
    const Guarded<double> partial(target, group.count * partials), total(target, group.count), one(target, 1);
    target.table().optimizers.square_sums(target.device(), group, on_x.data(), partial.data(), total.data());
    partial.read();
    const std::vector<double> sums = total.read();
    for (std::uint32_t m = 0; m < group.count; ++m) {
      const Guarded<float> matrix(target, apart[m]);
      target.table().model.square_sum(target.device(), apart[m].size(), matrix.data(), partial.data(), one.data());
      BOOST_TEST(sums[m] == one.read()[0]);
    }
  });
}

// Also for a norm that counts as zero, and for one that is no number.
template <class Number>
void check_scaling() {
  constexpr double norms[] = {2.5, 1e-40, 0.0, 0.99e-60, 1.01e-60, 1e70, std::numeric_limits<double>::quiet_NaN()};
  std::size_t next = 0;
  each_group(132, [&](const Target& target, const MatrixGroup& group, Prng& prng, std::size_t skip) {
    std::vector<double> squares;
    for (std::uint32_t m = 0; m < group.count; ++m) squares.push_back(norms[next++ % std::size(norms)]);
    const Floats x = drawn(prng, extent_of(group));
    Floats y;
    each_number(group, [&](std::size_t at, std::uint32_t m) {
      const double norm = std::sqrt(squares[m]);
      y.push_back(x[at] * (norm < models::newton_norm_min ? 0.0f : static_cast<float>(1 / norm)));
    });
    const Guarded<float> on_x(target, x, skip);
    const Guarded<double> on_squares(target, squares);
    const Guarded<Number> on_y(target, y.size(), skip);
    target.table().optimizers.scale_to_one(target.device(), group, models::newton_norm_min, on_squares.data(),
                                           on_x.data(), on_y.data());
    BOOST_TEST(same_bits(floats_of(on_y.read()), rounded_as<Number>(y)));
  });
}

BOOST_AUTO_TEST_CASE(scaling_to_a_norm_of_one) {
  check_scaling<float>();
  check_scaling<Bf16>();
}

BOOST_AUTO_TEST_CASE(a_polynomial_of_matrices_and_their_squares) {
  Prng prng(133);
  for (const std::uint32_t order : {0u, 1u, 2u, 33u, 70u})
    for (const std::uint32_t count : {0u, 1u, 3u}) {
      const Target target(order % 5);
      const std::size_t one = std::size_t{order} * order;
      const Floats gram = drawn(prng, count * one);
      Floats square = drawn(prng, count * one);
      const Guarded<float> on_gram(target, gram, prng.below(4)), on_square(target, square, prng.below(4));
      const Guarded<Bf16> rounded(target, count * one, prng.below(4));
      for (const Numbers y : {Numbers(rounded.data()), Numbers(on_square.data())})
        target.table().optimizers.quadratic(target.device(), count, order, {3.5f, -4.25f, 2.125f}, on_gram.data(),
                                            on_square.data(), y);
      for (std::size_t i = 0; i < square.size(); ++i) {
        square[i] = -4.25f * gram[i] + 2.125f * square[i];
        if (i % one % (order + 1) == 0) square[i] += 3.5f;
      }
      BOOST_TEST(same_bits(on_square.read(), square));
      BOOST_TEST(same_bits(floats_of(rounded.read()), rounded_as<Bf16>(square)));
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
