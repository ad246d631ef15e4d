#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/families/model.h"

namespace rumor::models {
namespace {

ParamLayout layout_of(std::vector<TensorInfo> tensors) {
  return std::move(ParamLayout::create(std::move(tensors))).value();
}

// A model that only says how its tensors begin.
class Beginner final : public Model {
 public:
  explicit Beginner(ParamLayout layout) : layout_(std::move(layout)) {}
  const ParamLayout& layout() const override { return layout_; }
  TensorStart start_of(const TensorInfo& tensor) const override {
    if (tensor.name == "gain") return {TensorStart::Kind::one};
    if (tensor.name == "normal") return {TensorStart::Kind::normal, 1, 2500};  // deviation 0.02
    return TensorStart::by_inputs(tensor);
  }
  void forward(std::span<const float>, const Batch&, std::span<const float>, std::span<float>) override {}
  float backward(std::span<const float>, const Batch&, std::span<const float>, std::span<const float>,
                 std::span<float>, std::span<float>) override {
    return 0;
  }
  Evaluation evaluate(std::span<const float>, const Batch&) override { return {}; }
  void predict(std::span<const float>, const Batch&, std::span<float>) override {}
  std::size_t predictions(std::uint32_t) const override { return 0; }
  std::size_t memory_bytes() const override { return 0; }

 private:
  ParamLayout layout_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(initial)

BOOST_AUTO_TEST_CASE(a_model_says_how_its_tensors_begin) {
  const Beginner model(layout_of({{"weight", {4, 5}}, {"gain", {3}}, {"normal", {100, 400}}, {"bias", {2}}}));
  const auto weights = initial_weights(model, 5, 24);
  BOOST_TEST(
      std::equal(weights.begin(), weights.begin() + 20, initial_weights(model.layout(), 5, 24).begin()));
  BOOST_TEST(
      std::all_of(weights.begin() + 20, weights.begin() + 23, [](std::int32_t w) { return w == 1 << 24; }));
  const double deviation = 0.02 * (1 << 24), count = 40'000;
  double sum = 0, squares = 0, fourths = 0, largest = 0;
  for (std::size_t i = 23; i < 40'023; ++i) {
    const double x = weights[i] / deviation;
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    largest = std::max(largest, std::abs(x));
  }
  BOOST_TEST(std::abs(sum / count) < 0.015);
  BOOST_TEST(std::abs(squares / count - 1) < 0.02);
  BOOST_TEST(std::abs(fourths / count - 2.9) <
             0.15);  // 3 for a normal distribution, 2.9 for twelve uniform ones
  BOOST_TEST(largest > 3.5);
  BOOST_TEST(largest <= 6);
  BOOST_TEST(weights[40'023] == 0);
  const std::int32_t golden[] = {-293693, -437166, -148434};  // by hand: whole numbers only
  BOOST_TEST(std::equal(golden, golden + 3, weights.begin() + 23));
}

BOOST_AUTO_TEST_CASE(weights_fill_their_range_evenly_and_biases_are_zero) {
  const ParamLayout layout = layout_of({{"0.weight", {200, 96}}, {"0.bias", {200}}});
  const auto weights = initial_weights(layout, 7, 24);
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
  const auto alone = initial_weights(one, 1, 24), after = initial_weights(two, 1, 24);
  BOOST_TEST(std::equal(alone.begin(), alone.end(), after.begin() + 16));
  BOOST_TEST(!std::equal(after.begin(), after.begin() + 15, after.begin() + 16));
  BOOST_TEST(initial_weights(one, 1, 24) == alone);
  BOOST_TEST(initial_weights(one, 2, 24) != alone);
}

BOOST_AUTO_TEST_CASE(the_finest_grid_does_not_overflow) {
  const ParamLayout layout = layout_of({{"w", {2000, 1}}});
  const auto weights = initial_weights(layout, 3, 30);
  const auto [low, high] = std::minmax_element(weights.begin(), weights.end());
  BOOST_TEST(*low < -2'000'000'000);
  BOOST_TEST(*high > 2'000'000'000);
  for (const std::int32_t w : initial_weights(layout, 3, 0)) BOOST_TEST(std::abs(w) <= 2);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
