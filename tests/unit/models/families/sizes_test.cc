// Convolutional networks on pictures of several sizes, with the same weights: those of a network for that size alone.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/families/model.h"
#include "models/kernels/area_mean.h"
#include "runtime/base/prng.h"
#include "tests/unit/threads.h"

namespace rumor::models {

BOOST_AUTO_TEST_SUITE(sizes)

namespace {

using Floats = std::vector<float>;

constexpr std::uint32_t whole_side = 12, rows = 9;

// For pictures of two channels and three classes.
ModelConfig config_of(std::uint32_t side, std::uint32_t blocks, std::vector<std::uint32_t> hidden) {
  ModelConfig config;
  config.family = "cnn";
  config.stage_channels = {4, 6};
  config.hidden = std::move(hidden);
  config.blocks = blocks;
  config.groups = 2;
  config.channels = 2;
  config.height = config.width = side;
  config.inputs = 2 * side * side;
  config.classes = 3;
  return config;
}

ModelConfig in_sizes(ModelConfig config, std::vector<std::uint32_t> sizes) {
  config.sizes = std::move(sizes);
  return config;
}

Floats drawn(std::uint64_t seed, std::size_t count) {
  Prng prng(seed);
  Floats values(count);
  for (float& value : values) value = static_cast<float>(prng.between(-600, 600)) / 1024;
  return values;
}

struct Pictures {
  explicit Pictures(std::uint32_t side) : x(drawn(side, std::size_t{rows} * 2 * side * side)), label(rows) {
    for (std::uint32_t row = 0; row < rows; ++row) label[row] = static_cast<std::uint8_t>(row % 3);
  }
  Batch batch() const { return {x, label, rows}; }
  Floats x;
  std::vector<std::uint8_t> label;
};

struct Learned {
  float loss;
  Floats gradient;
};

Learned learned(Model& model, const Floats& params, const Batch& batch) {
  Learned made{0, Floats(params.size(), 99.0f)};
  made.loss = model.loss_and_gradient(params, batch, made.gradient);
  return made;
}

// The weights of the first dense layer, [units][channels][whole][whole], for the map of a smaller picture: each unit
// has those of the places that a pixel of the small map is stretched to.
Floats resampled_head(const Floats& weights, std::uint32_t units, std::uint32_t channels, std::uint32_t whole,
                      std::uint32_t small) {
  const AreaMean area(small, whole);
  Floats head(std::size_t{units} * channels * small * small);
  LargeVector<float> scratch;
  for (std::size_t plane = 0; plane < std::size_t{units} * channels; ++plane)
    area.map_backward(1, weights.data() + plane * whole * whole, head.data() + plane * small * small, scratch);
  return head;
}

std::string refusal(const ModelConfig& config) {
  const auto made = make_model(config);
  return made ? std::string() : made.error().text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_tensors_and_whole_pictures_are_those_of_a_network_without_sizes) {
  for (const std::uint32_t blocks : {0u, 1u}) {
    const auto plain = make_model(config_of(whole_side, blocks, {5})).value();
    const auto sized = make_model(in_sizes(config_of(whole_side, blocks, {5}), {4, 7, 12})).value();
    BOOST_TEST((plain->layout().hash() == sized->layout().hash()));
    const Floats params = drawn(3, plain->layout().params());
    const Pictures whole(whole_side), small(7);
    learned(*sized, params, small.batch());
    const Learned expected = learned(*plain, params, whole.batch()), got = learned(*sized, params, whole.batch());
    BOOST_TEST(got.loss == expected.loss);
    BOOST_TEST((got.gradient == expected.gradient));
    BOOST_TEST(sized->multiply_adds(5) == plain->multiply_adds(5));
  }
}

// Behind a mean over the pixels the head does not know the size.
BOOST_AUTO_TEST_CASE(a_residual_network_has_the_bits_of_one_for_that_size) {
  const auto sized = make_model(in_sizes(config_of(whole_side, 1, {}), {4, 7, 12})).value();
  const Floats params = drawn(5, sized->layout().params());
  for (const std::uint32_t side : {4u, 7u, 12u, 4u}) {
    const auto alone = make_model(config_of(side, 1, {})).value();
    const Pictures pictures(side);
    const Learned expected = learned(*alone, params, pictures.batch()), got = learned(*sized, params, pictures.batch());
    BOOST_TEST(got.loss == expected.loss, "side " << side);
    BOOST_TEST((got.gradient == expected.gradient), "side " << side);
    BOOST_TEST(sized->evaluate(params, pictures.batch()).loss == alone->evaluate(params, pictures.batch()).loss);
    BOOST_TEST(sized->multiply_adds_at(3, side) == alone->multiply_adds(3));
  }
}

// To stretch the map is to resample the weights of the head: the loss is that of a network for the small pictures with
// such weights, and so are the gradients of the convolutions.
BOOST_AUTO_TEST_CASE(a_flattening_head_sees_small_maps_stretched) {
  constexpr std::uint32_t units = 5, channels = 6, whole = whole_side / 4;
  const auto sized = make_model(in_sizes(config_of(whole_side, 0, {units}), {4, 8, 12})).value();
  const Floats params = drawn(7, sized->layout().params());
  const std::vector<TensorInfo>& tensors = sized->layout().tensors();
  const auto head = std::find_if(tensors.begin(), tensors.end(), [&](const TensorInfo& tensor) {
    return tensor.shape == std::vector<std::uint32_t>{units, channels * whole * whole};
  });
  BOOST_REQUIRE(head != tensors.end());
  const Floats weights(params.begin() + head->offset, params.begin() + head->offset + head->size);
  for (const std::uint32_t side : {4u, 8u}) {
    const auto alone = make_model(config_of(side, 0, {units})).value();
    Floats small(params.begin(), params.begin() + head->offset);
    const Floats resampled = resampled_head(weights, units, channels, whole, side / 4);
    small.insert(small.end(), resampled.begin(), resampled.end());
    small.insert(small.end(), params.begin() + head->offset + head->size, params.end());
    BOOST_REQUIRE(small.size() == alone->layout().params());
    const Pictures pictures(side);
    const Learned expected = learned(*alone, small, pictures.batch());
    const Learned got = learned(*sized, params, pictures.batch());
    BOOST_TEST(std::abs(got.loss - expected.loss) < 1e-6f, "side " << side);
    for (std::size_t i = 0; i < head->offset; ++i)
      BOOST_TEST(std::abs(got.gradient[i] - expected.gradient[i]) < 2e-6f, "side " << side << " parameter " << i);
    // The head's own gradient goes to the stretched places.
    const Floats of_head(got.gradient.begin() + head->offset, got.gradient.begin() + head->offset + head->size);
    double along = 0, expected_along = 0;  // the direction `weights`, which resamples to `resampled`
    for (std::size_t i = 0; i < of_head.size(); ++i) along += static_cast<double>(of_head[i]) * weights[i];
    for (std::size_t i = 0; i < resampled.size(); ++i)
      expected_along += static_cast<double>(expected.gradient[head->offset + i]) * resampled[i];
    BOOST_TEST(std::abs(along - expected_along) < 1e-5, "side " << side);
    const std::uint64_t dense = sized->layout().params() - head->offset;
    BOOST_TEST(sized->multiply_adds_at(1, side) > dense);
    BOOST_TEST(sized->multiply_adds_at(1, side) < sized->multiply_adds(1));
  }
}

BOOST_AUTO_TEST_CASE(any_number_of_threads_gives_equal_bits) {
  const ModelConfig config = in_sizes(config_of(whole_side, 0, {5}), {4, 8, 12});
  const auto one = make_model(config).value(), many = make_model(config).value();
  const Floats params = drawn(11, one->layout().params());
  for (const std::uint32_t side : {8u, 12u, 4u, 8u}) {
    const Pictures pictures(side);
    const Learned expected = learned(*one, params, pictures.batch());
    for (const unsigned width : {2u, 5u}) {
      rumor::test::Threads threads(width);
      many->set_parallel(&threads);
      const Learned got = learned(*many, params, pictures.batch());
      many->set_parallel(nullptr);
      BOOST_TEST(got.loss == expected.loss);
      BOOST_TEST((got.gradient == expected.gradient), "side " << side << ", " << width << " threads");
    }
  }
}

BOOST_AUTO_TEST_CASE(sizes_that_do_not_fit_are_refused_with_a_fix) {
  const ModelConfig good = config_of(whole_side, 0, {5});
  BOOST_TEST(refusal(in_sizes(good, {4, 12})).empty());
  BOOST_TEST(refusal(in_sizes(good, {4, 8})) == "data.resolution ends with 8 pixels, and the pictures have 12; the "
                                                "last size must be that of the whole picture");
  BOOST_TEST(refusal(in_sizes(good, {3, 12})) == "data.resolution: pictures of 3 x 3 cannot be halved 2 times; begin "
                                                 "with 4 pixels or more");
  BOOST_TEST(refusal(in_sizes(good, {12, 12})) == "data.resolution: the sizes must rise, from 1 pixel on");
  BOOST_TEST(refusal(in_sizes(config_of(whole_side, 1, {5}), {1, 12})).find("cannot be halved 1 times") !=
             std::string::npos);
  ModelConfig config = in_sizes(good, {4, 12});
  config.width = 10;
  BOOST_TEST(refusal(config) == "data.resolution needs square pictures, not 12 x 10; leave it out");
  config = in_sizes(good, {4, 12});
  config.units = {0, 1};
  BOOST_TEST(refusal(config) == "data.resolution is not possible for a part of a model; leave it out");
  config = in_sizes(good, {4, 12});
  config.family = "mlp";
  BOOST_TEST(refusal(config) == "data.resolution shrinks pictures, which only model.family = \"cnn\" takes in any "
                                "size, and this one is \"mlp\"; leave data.resolution out");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
