// Convolution, GroupNorm and pooling, each against a slow twin in double: forward by value, backward by
// finite differences of sum(weight of its own * output).
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <vector>

#include "models/kernels/kernels.h"
#include "models/layers/conv.h"
#include "models/layers/group_norm.h"
#include "models/layers/pool.h"
#include "runtime/base/prng.h"

namespace rumor::models {
namespace {

using Doubles = std::vector<double>;
using Floats = LargeVector<float>;

Floats draw_floats(Prng& prng, std::size_t count) {
  Floats values(count);
  for (float& value : values) value = static_cast<float>(prng.between(-1000, 1000)) / 1000;
  return values;
}

Doubles doubled(const Floats& values) {
  return {values.begin(), values.end()};
}

double dot(const Floats& a, const Doubles& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void check_near(const Floats& got, const Doubles& expected, double tolerance, const char* what) {
  BOOST_REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    BOOST_TEST(std::abs(got[i] - expected[i]) < tolerance,
               what << " " << i << ": " << got[i] << " != " << expected[i]);
}

// Slopes of dot(change, twin(x)) in every x.
void check_slopes(const Floats& got, Doubles x, const Floats& change,
                  const std::function<Doubles(const Doubles&)>& twin, double tolerance, const char* what) {
  Doubles slopes;
  for (double& value : x) {
    const double here = value, step = 1e-5;
    value = here + step;
    const double above = dot(change, twin(x));
    value = here - step;
    const double below = dot(change, twin(x));
    value = here;
    slopes.push_back((above - below) / (2 * step));
  }
  check_near(got, slopes, tolerance, what);
}

// x [h][w][in], weight [out][in][3][3], bias [out] or empty
Doubles slow_convolution(PictureShape shape, std::uint32_t out, const Doubles& x, const Doubles& weight,
                         const Doubles& bias) {
  Doubles y;
  const int height = static_cast<int>(shape.height), width = static_cast<int>(shape.width);
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      for (std::size_t o = 0; o < out; ++o) {
        double sum = bias.empty() ? 0 : bias[o];
        for (std::size_t c = 0; c < shape.channels; ++c) {
          for (int t = 0; t < 9; ++t) {
            const int r = row + t / 3 - 1, k = column + t % 3 - 1;
            if (r < 0 || r >= height || k < 0 || k >= width) continue;
            sum += x[static_cast<std::size_t>(r * width + k) * shape.channels + c] *
                   weight[(o * shape.channels + c) * 9 + static_cast<std::size_t>(t)];
          }
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

Doubles slow_norm(PictureShape shape, std::size_t groups, const Doubles& x, const Doubles& weight,
                  const Doubles& bias) {
  const std::size_t channels = shape.channels, members = channels / groups;
  Doubles y(x.size());
  for (std::size_t first = 0; first < channels; first += members) {
    double sum = 0, squares = 0;
    const double count = static_cast<double>(shape.pixels() * members);
    const auto each = [&](const auto& act) {
      for (std::size_t p = 0; p < shape.pixels(); ++p)
        for (std::size_t c = first; c < first + members; ++c) act(p * channels + c, c);
    };
    each([&](std::size_t i, std::size_t) { sum += x[i]; });
    each([&](std::size_t i, std::size_t) { squares += (x[i] - sum / count) * (x[i] - sum / count); });
    const double deviation = std::sqrt(squares / count + GroupNorm::epsilon);
    each(
        [&](std::size_t i, std::size_t c) { y[i] = (x[i] - sum / count) / deviation * weight[c] + bias[c]; });
  }
  return y;
}

struct NetSize {
  PictureShape shape;
  std::uint32_t out;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(picture_layers)

BOOST_AUTO_TEST_CASE(convolution_agrees_with_its_slow_twin) {
  for (const auto& [shape, out] : {NetSize{{5, 4, 2}, 3}, NetSize{{1, 1, 3}, 2}, NetSize{{3, 6, 1}, 17}}) {
    Prng prng(out);
    const Convolution convolution(shape, out);
    const Floats x = draw_floats(prng, shape.size()), weight = draw_floats(prng, convolution.weights()),
                 bias = draw_floats(prng, out);
    const Floats change = draw_floats(prng, shape.pixels() * out);
    Floats y(change.size()), scratch, by_place(weight.size(), 0.5f), bias_gradient(out, 0.25f),
        weight_gradient(weight);
    Floats change_x(x.size());
    ConvolutionWeights ordered;
    convolution.order(weight.data(), ordered);
    const auto twin = [&, shape = shape, out = out](const Doubles& at, const Doubles& w, const Doubles& b) {
      return slow_convolution(shape, out, at, w, b);
    };
    convolution.forward(ordered, nullptr, x.data(), y.data(), scratch);
    check_near(y, twin(doubled(x), doubled(weight), {}), 1e-5, "without bias");
    convolution.forward(ordered, bias.data(), x.data(), y.data(), scratch);
    check_near(y, twin(doubled(x), doubled(weight), doubled(bias)), 1e-5, "forward");

    // Gradients of weights are added to what is there.
    convolution.weight_gradient(x.data(), change.data(), by_place.data(), bias_gradient.data(), scratch);
    convolution.restore(by_place.data(), weight_gradient.data());
    for (float& g : weight_gradient) g -= 0.5f;
    for (float& g : bias_gradient) g -= 0.25f;
    check_slopes(
        weight_gradient, doubled(weight), change,
        [&](const Doubles& w) { return twin(doubled(x), w, doubled(bias)); }, 1e-5, "weight");
    check_slopes(
        bias_gradient, doubled(bias), change,
        [&](const Doubles& b) { return twin(doubled(x), doubled(weight), b); }, 1e-5, "bias");
    convolution.input_gradient(ordered, change.data(), change_x.data(), Start::zero, scratch);
    const auto of_x = [&](const Doubles& at) { return twin(at, doubled(weight), doubled(bias)); };
    check_slopes(change_x, doubled(x), change, of_x, 1e-5, "input");
    Floats twice = change_x;
    convolution.input_gradient(ordered, change.data(), twice.data(), Start::output, scratch);
    for (std::size_t i = 0; i < twice.size(); ++i) BOOST_TEST(std::abs(twice[i] - 2 * change_x[i]) < 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(group_norm_agrees_with_its_slow_twin) {
  for (const std::uint32_t groups : {1u, 2u, 6u}) {
    const PictureShape shape{3, 4, 6};
    Prng prng(groups);
    const GroupNorm norm(shape, groups);
    Floats x = draw_floats(prng, shape.size());
    for (float& value : x) value = 3 * value + 7;  // far from its mean of zero
    const Floats weight = draw_floats(prng, 6), bias = draw_floats(prng, 6), change = draw_floats(prng, shape.size());
    Floats y(x.size()), saved(norm.saved()), change_x = change, weight_gradient(6, 0.5f),
                                             bias_gradient(6, 0.25f);
    const auto twin = [&](const Doubles& at, const Doubles& w, const Doubles& b) {
      return slow_norm(shape, groups, at, w, b);
    };
    norm.forward(weight.data(), bias.data(), x.data(), y.data(), saved.data());
    check_near(y, twin(doubled(x), doubled(weight), doubled(bias)), 1e-5, "forward");
    norm.backward(weight.data(), x.data(), saved.data(), change_x.data(), weight_gradient.data(),
                  bias_gradient.data());
    for (float& g : weight_gradient) g -= 0.5f;
    for (float& g : bias_gradient) g -= 0.25f;
    const auto of_x = [&](const Doubles& at) { return twin(at, doubled(weight), doubled(bias)); };
    check_slopes(change_x, doubled(x), change, of_x, 1e-5, "input");
    const auto of_weight = [&](const Doubles& w) { return twin(doubled(x), w, doubled(bias)); };
    check_slopes(weight_gradient, doubled(weight), change, of_weight, 1e-5, "weight");
    const auto of_bias = [&](const Doubles& b) { return twin(doubled(x), doubled(weight), b); };
    check_slopes(bias_gradient, doubled(bias), change, of_bias, 1e-5, "bias");
  }
}

BOOST_AUTO_TEST_CASE(a_flat_group_is_brought_to_its_bias) {
  const PictureShape shape{2, 2, 2};
  const GroupNorm norm(shape, 1);
  const Floats x(8, 3.0f), weight(2, 2.0f), bias = {0.5f, -1};
  Floats y(8), saved(norm.saved());
  norm.forward(weight.data(), bias.data(), x.data(), y.data(), saved.data());
  for (std::size_t i = 0; i < 8; ++i) BOOST_TEST(y[i] == bias[i % 2]);
}

// Worked out by hand: 3 x 3 pixels of 2 channels; the last row and column do not count.
BOOST_AUTO_TEST_CASE(max_pooling_takes_the_first_of_the_largest) {
  const Floats x = {1, 5, 4, 5, 9, 9,  //
                    3, 2, 2, 5, 9, 9,  //
                    9, 9, 9, 9, 9, 9};
  const PictureShape shape{3, 3, 2};
  const Floats change_y = {10, 20};
  Floats y(2), change_x(18, 7.0f);
  BOOST_TEST(max_pooled(shape).size() == 2u);
  max_pool(shape, x.data(), y.data());
  BOOST_TEST((y == Floats{4, 5}));
  max_pool_backward(shape, x.data(), change_y.data(), change_x.data());
  BOOST_TEST((change_x == Floats{0, 20, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  const Floats broken = {1, 5, std::nanf(""), 5, 3, 2, 2, 5};
  max_pool({2, 2, 2}, broken.data(), y.data());
  BOOST_TEST(std::isnan(y[0]));
  BOOST_TEST(y[1] == 5.0f);
}

BOOST_AUTO_TEST_CASE(average_pooling_spreads_what_comes_back) {
  const Floats x = {1, 10, 2, 20, 3, 30, 6, 60}, change_y = {8, -4};
  const PictureShape shape{2, 2, 2};
  Floats y(2), change_x(8);
  average_pool(shape, x.data(), y.data());
  BOOST_TEST((y == Floats{3, 30}));
  average_pool_backward(shape, change_y.data(), change_x.data());
  BOOST_TEST((change_x == Floats{2, -1, 2, -1, 2, -1, 2, -1}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
