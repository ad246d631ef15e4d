#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/model.h"

namespace rumor::models {
namespace {

ParamLayout layout_of(std::vector<TensorInfo> tensors) {
  return std::move(ParamLayout::create(std::move(tensors))).value();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(initial)

BOOST_AUTO_TEST_CASE(weights_fill_their_range_evenly_and_biases_are_zero) {
  const ParamLayout layout = layout_of({{"0.weight", {200, 96}}, {"0.bias", {200}}});
  const std::vector<std::int32_t> weights = initial_weights(layout, 7, 24);
  BOOST_REQUIRE(weights.size() == 200u * 96 + 200);
  const auto end = weights.begin() + 200 * 96;
  const auto [low, high] = std::minmax_element(weights.begin(), end);
  const int bound = (1 << 24) / 4;  // sqrt(6 / 96)
  BOOST_TEST(*high <= bound);
  BOOST_TEST(*high > bound - bound / 100);
  BOOST_TEST(*low >= -bound);
  BOOST_TEST(*low < -bound + bound / 100);
  double sum = 0, squares = 0;
  for (auto w = weights.begin(); w != end; ++w) {
    sum += *w;
    squares += static_cast<double>(*w) * *w;
  }
  const double count = 200 * 96;
  BOOST_TEST(std::abs(sum / count) < 0.02 * bound);
  BOOST_TEST(std::abs(squares / count / bound / bound - 1.0 / 3) < 0.01);
  BOOST_TEST(std::all_of(end, weights.end(), [](std::int32_t w) { return w == 0; }));
}

// A tensor's weights depend on the seed and its own name, not on its neighbours.
BOOST_AUTO_TEST_CASE(each_tensor_has_its_own_generator) {
  const ParamLayout one = layout_of({{"b", {3, 5}}}), two = layout_of({{"a", {4, 4}}, {"b", {3, 5}}});
  const std::vector<std::int32_t> alone = initial_weights(one, 1, 24), after = initial_weights(two, 1, 24);
  BOOST_TEST(std::equal(alone.begin(), alone.end(), after.begin() + 16));
  BOOST_TEST(!std::equal(after.begin(), after.begin() + 15, after.begin() + 16));
  BOOST_TEST(initial_weights(one, 1, 24) == alone);
  BOOST_TEST(initial_weights(one, 2, 24) != alone);
}

BOOST_AUTO_TEST_CASE(the_finest_grid_does_not_overflow) {
  const ParamLayout layout = layout_of({{"w", {2000, 1}}});
  const std::vector<std::int32_t> weights = initial_weights(layout, 3, 30);
  const auto [low, high] = std::minmax_element(weights.begin(), weights.end());
  BOOST_TEST(*low < -2'000'000'000);
  BOOST_TEST(*high > 2'000'000'000);
  for (const std::int32_t w : initial_weights(layout, 3, 0)) BOOST_TEST(std::abs(w) <= 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
