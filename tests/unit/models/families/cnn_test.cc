// Whole convolutional networks: against PyTorch (golden_cnn.py), with any number of threads, and what is
// refused.
#include "models/families/cnn.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/kernels/kernels.h"
#include "runtime/base/kernel_choice.h"
#include "runtime/base/prng.h"
#include "tests/unit/models/families/golden_cnn.h"
#include "tests/unit/threads.h"

namespace rumor::models {
namespace {

// A network for pictures of 2 x 7 x 7 and three classes, as in golden_cnn.py.
ModelConfig config_of(std::vector<std::uint32_t> channels, std::vector<std::uint32_t> hidden,
                      std::uint32_t blocks, std::uint32_t groups) {
  ModelConfig config;
  config.family = "cnn";
  config.stage_channels = std::move(channels);
  config.hidden = std::move(hidden);
  config.blocks = blocks;
  config.groups = groups;
  config.channels = 2;
  config.height = config.width = 7;
  config.inputs = 2 * 7 * 7;
  config.classes = 3;
  return config;
}

std::vector<float> values(std::size_t count, int factor, int modulus) {
  std::vector<float> list(count);
  for (std::size_t i = 0; i < count; ++i)
    list[i] = static_cast<float>(static_cast<int>(i) * factor % modulus - modulus / 2) / 64;
  return list;
}

void compare_with_pytorch(const ModelConfig& config, double golden_loss, std::span<const char* const> names,
                          std::span<const float> golden_gradient) {
  const auto model = std::move(make_model(config)).value();
  const std::vector<TensorInfo>& tensors = model->layout().tensors();
  BOOST_REQUIRE(tensors.size() == names.size());
  for (std::size_t i = 0; i < names.size(); ++i) BOOST_TEST(tensors[i].name == names[i]);
  const std::vector<float> params = values(model->layout().params(), 37, 101), x = values(3 * 98, 29, 83);
  std::vector<float> gradient(params.size()), first;
  const std::uint8_t labels[] = {0, 2, 1};
  BOOST_REQUIRE(golden_gradient.size() == (params.size() + 2) / 3);
  for (const KernelTable* table : kernel_variants()) {
    BOOST_REQUIRE(choose_kernels(table->name).ok());
    const float loss = model->loss_and_gradient(params, {x, labels, 3}, gradient);
    BOOST_TEST(std::abs(loss - golden_loss) < 1e-6,
               table->name << ": loss " << loss << " != " << golden_loss);
    for (std::size_t i = 0; i < golden_gradient.size(); ++i)
      BOOST_TEST(
          std::abs(gradient[3 * i] - golden_gradient[i]) < 3e-6,
          table->name << " parameter " << 3 * i << ": " << gradient[3 * i] << " != " << golden_gradient[i]);
    if (first.empty()) first = gradient;
    BOOST_TEST((gradient == first), table->name << " has bits of its own");
    BOOST_TEST(std::abs(model->evaluate(params, {x, labels, 3}).loss - golden_loss) < 1e-6);
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

std::string refusal(const ModelConfig& config) {
  const auto made = make_model(config);
  return made ? std::string() : made.error().text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cnn)

BOOST_AUTO_TEST_CASE(a_plain_network_computes_what_pytorch_does) {
  compare_with_pytorch(config_of({4, 6}, {5}, 0, 0), golden_plain_loss, golden_plain_names,
                       golden_plain_gradient);
}

BOOST_AUTO_TEST_CASE(a_residual_network_computes_what_pytorch_does) {
  compare_with_pytorch(config_of({4, 6}, {}, 1, 2), golden_residual_loss, golden_residual_names,
                       golden_residual_gradient);
}

// Weights of a convolution are used once a pixel, the rest once.
BOOST_AUTO_TEST_CASE(work_is_counted_by_pixel) {
  const auto model = std::move(make_model(config_of({4, 6}, {70, 5}, 0, 2))).value();
  const std::uint64_t convolutions = 9 * (2 * 4 * 49 + 4 * 6 * 9);  // the second after a pooling
  BOOST_TEST(model->multiply_adds(1) > convolutions);
  BOOST_TEST(model->multiply_adds(1) < convolutions + model->layout().params());
  BOOST_TEST(model->multiply_adds(30) == 30 * model->multiply_adds(1));
}

BOOST_AUTO_TEST_CASE(any_number_of_threads_and_any_batch_gives_equal_bits) {
  for (const ModelConfig& config : {config_of({4, 6}, {70, 5}, 0, 2), config_of({4, 6}, {}, 1, 2)}) {
    const auto one = std::move(make_model(config)).value(), many = std::move(make_model(config)).value();
    const std::vector<float> params = values(one->layout().params(), 37, 101);
    std::vector<float> expected(params.size()), gradient(params.size());
    for (const std::uint32_t rows : {3u, 70u, 9u}) {
      const std::vector<float> x = values(rows * 98, 29, 83);
      const std::vector<std::uint8_t> labels(rows, 1);
      const float loss = one->loss_and_gradient(params, {x, labels, rows}, expected);
      for (const unsigned width : {1u, 2u, 5u}) {
        rumor::test::Threads threads(width);
        many->set_parallel(&threads);
        std::fill(gradient.begin(), gradient.end(), 99.0f);
        BOOST_TEST(many->loss_and_gradient(params, {x, labels, rows}, gradient) == loss);
        BOOST_TEST((gradient == expected), width << " threads, batch " << rows);
        BOOST_TEST(many->evaluate(params, {x, labels, rows}).loss ==
                   one->evaluate(params, {x, labels, rows}).loss);
        many->set_parallel(nullptr);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(names_count_modules_as_sequential_does) {
  ModelConfig config = config_of({4, 8, 8}, {16}, 0, 4);
  config.pool_every = 2;
  const auto model = std::move(make_model(config)).value();
  std::vector<std::string> names;
  for (const TensorInfo& tensor : model->layout().tensors()) names.push_back(tensor.name);
  // Conv 0, Norm 1, ReLU 2, Conv 3, Norm 4, ReLU 5, Pool 6, Conv 7, Norm 8, ReLU 9, Flatten 10, Linear 11,
  // ReLU 12, Linear 13
  const std::vector<std::string> expected = {"0.weight", "1.weight",  "1.bias",   "3.weight", "4.weight",
                                             "4.bias",   "7.weight",  "8.weight", "8.bias",   "11.weight",
                                             "11.bias",  "13.weight", "13.bias"};
  BOOST_TEST((names == expected));
  BOOST_TEST((model->layout().tensors()[9].shape == std::vector<std::uint32_t>{16, 8 * 3 * 3}));
  BOOST_TEST((model->layout().tensors()[3].shape == std::vector<std::uint32_t>{8, 4, 3, 3}));
}

BOOST_AUTO_TEST_CASE(resnet_20_has_its_size) {
  ModelConfig config = config_of({16, 32, 64}, {}, 3, 8);
  config.channels = 3;
  config.height = config.width = 32;
  config.classes = 10;
  const auto model = std::move(make_model(config)).value();
  BOOST_TEST(model->layout().params() == 269'722u);  // He et al. 2016, table 6: 0.27 million
}

BOOST_AUTO_TEST_CASE(scales_begin_at_one) {
  const auto model = std::move(make_model(config_of({4, 6}, {}, 1, 2))).value();
  const auto weights = initial_weights(*model, 1, 24);
  for (const TensorInfo& tensor : model->layout().tensors()) {
    if (tensor.shape.size() > 1) continue;
    const std::int32_t expected = tensor.name.ends_with(".weight") ? 1 << 24 : 0;
    for (std::uint32_t i = 0; i < tensor.size; ++i)
      BOOST_TEST(weights[tensor.offset + i] == expected, tensor.name);
  }
}

BOOST_AUTO_TEST_CASE(bad_configurations_are_refused_with_the_key_and_a_fix) {
  const ModelConfig good = config_of({4, 6}, {5}, 0, 2);
  BOOST_TEST(refusal(good).empty());
  ModelConfig config = good;
  config.height = 0;
  BOOST_TEST(refusal(config) ==
             "a cnn needs pictures, and the rows of this data set are none; use model.family = \"mlp\"");
  config = good;
  config.stage_channels = {};
  BOOST_TEST(refusal(config).find("model.channels is empty") == 0u);
  config = good;
  config.groups = 4;
  BOOST_TEST(refusal(config) == "model.groups = 4 does not divide the 6 channels of a convolution");
  config = good;
  config.stage_channels = {2, 2, 2};
  BOOST_TEST(refusal(config) == "pictures of 7 x 7 cannot be halved 3 times; raise model.pool_every");
  config.pool_every = 3;
  BOOST_TEST(refusal(config).empty());
  config.pool_every = 0;
  BOOST_TEST(refusal(config).find("model.pool_every") == 0u);
  config = good;
  config.blocks = 1;
  config.stage_channels = {6, 4};
  BOOST_TEST(refusal(config) == "model.channels: a residual stage of 4 channels cannot follow one of 6");
  config.stage_channels = {4, 6};
  config.groups = 0;
  BOOST_TEST(refusal(config) == "residual blocks need GroupNorm; set model.groups, such as groups = 8");
  config = good;
  config.hidden = {0};
  BOOST_TEST(refusal(config) == "a hidden layer of the cnn has no units; leave it out");
  config = good;
  config.classes = 1;
  BOOST_TEST(refusal(config) == "a cnn needs 2 to 256 classes, not 1");
  config = good;
  config.stage_channels = {5000};
  config.groups = 0;
  BOOST_TEST(refusal(config) == "model.channels: 5000 is not in 1 to 4096");
  config.stage_channels = {4000};
  config.height = config.width = 100;
  BOOST_TEST(refusal(config).find("more than") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
