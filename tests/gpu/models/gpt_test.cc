// DeviceGpt against models::Gpt: loss, gradient and evaluation; logits a few rows at a time; batches of changing size.
#include "gpu/models/gpt.h"

#include <boost/test/unit_test.hpp>

#include "tests/gpu/models/model_support.h"
#include "tests/unit/models/families/gpt_config.h"

using namespace rumor;
using namespace rumor::gpu;
using models::test::gpt_config;

BOOST_AUTO_TEST_SUITE(gpu_gpt)

namespace {

struct Text {
  std::vector<models::Token> tokens;
  models::Batch batch;

  Text(Prng& prng, std::uint32_t rows, const models::ModelConfig& config)
      : tokens(std::size_t{rows} * (config.context + 1)) {
    for (models::Token& token : tokens) token = static_cast<models::Token>(prng.below(config.vocabulary));
    batch.rows = rows;
    batch.tokens = tokens;
  }
};

models::ModelConfig untied(models::ModelConfig config) {
  config.tied_head = false;
  return config;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_part_of_a_model_is_refused) {
  const Target target(0);
  models::ModelConfig part = untied(gpt_config(37, 9, 2, 2, 8));
  part.units = {0, 1};
  const auto refused = make_device_model(*target.gpu, part, Precision::fp32);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(refused.error().text == "a part of a model does not train on a GPU yet; use --device cpu");
}

BOOST_AUTO_TEST_CASE(adapters_are_refused) {
  const Target target(0);
  models::ModelConfig config = gpt_config(37, 9, 2, 2, 8);
  config.adapter.kind = "lora";
  const auto refused = make_device_model(*target.gpu, config, Precision::fp32);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(refused.error().text == "model.adapter = \"lora\" is not possible on a GPU yet; use --device cpu");
}

// Kernels take tokens of 16 bits.
BOOST_AUTO_TEST_CASE(a_vocabulary_beyond_sixteen_bits_is_refused) {
  const Target target(0);
  if (!has_products(target)) return;
  BOOST_TEST(DeviceGpt::create(*target.gpu, gpt_config(65'536, 4, 1, 1, 2), Precision::fp32).ok());
  const auto refused = DeviceGpt::create(*target.gpu, gpt_config(65'537, 4, 1, 1, 2), Precision::fp32);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(refused.error().text.find("65536 tokens are the most") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(loss_and_gradient_are_those_of_the_cpu) {
  Prng prng(91);
  std::uint64_t order = 0;
  struct Case {
    models::ModelConfig config;
    std::uint32_t rows;
    std::size_t logits;
  };
  const Case cases[] = {{gpt_config(2, 1, 1, 1, 1), 1, 1},
                        {gpt_config(37, 9, 2, 2, 8), 3, 37 * 5},
                        {gpt_config(256, 40, 1, 3, 36), 2, 1 << 20},
                        {gpt_config(11, 70, 3, 1, 20), 1, 11 * 70},
                        {untied(gpt_config(37, 9, 2, 2, 8)), 3, 37 * 5}};
  for (const Case& c : cases) {
    const std::unique_ptr<models::Model> cpu = models::make_gpt(c.config).value();
    const Text text(prng, c.rows, c.config);
    const Floats params = stirred(prng, *cpu, 2e-3f);
    Floats gradient(params.size());
    const float loss = cpu->loss_and_gradient(params, text.batch, gradient);
    const models::Evaluation evaluation = cpu->evaluate(params, text.batch);
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      const double tolerance = precision == Precision::fp32 ? 5e-5 : 2e-2;
      const Target target(order++);
      if (!has_products(target)) return;
      DeviceGpt gpt = DeviceGpt::create(*target.gpu, c.config, precision, c.logits).value();
      const DeviceArray<float> on_params = copied(target, params), on_gradient = copied(target, gradient);
      Floats found(gradient.size()), again(gradient.size());
      for (Floats* into : {&found, &again}) {
        target.table().fill(target.device(), on_gradient.data(), 0xff, gradient.size() * sizeof(float));
        const Result<float> got = gpt.loss_and_gradient(on_params, text.batch, on_gradient);
        BOOST_TEST_REQUIRE(got.ok());
        BOOST_TEST(std::abs(*got - loss) < tolerance * (1 + std::abs(loss)));
        BOOST_TEST_REQUIRE(on_gradient.read(into->data(), into->size()).ok());
      }
      BOOST_TEST(distance(found, gradient) < tolerance);
      BOOST_TEST(same_bits(found, again));
      if (precision != Precision::fp32) continue;
      const models::Evaluation seen = gpt.evaluate(on_params, text.batch).value();
      BOOST_TEST(std::abs(seen.loss - evaluation.loss) < tolerance * (1 + evaluation.loss));
      BOOST_TEST(!seen.accuracy.has_value());
    }
  }
}

// Each tensor's gradient by itself: those of biases are small beside the table's.
BOOST_AUTO_TEST_CASE(every_tensor_has_its_gradient) {
  Prng prng(92);
  const models::ModelConfig config = gpt_config(23, 12, 2, 2, 12);
  const std::unique_ptr<models::Model> cpu = models::make_gpt(config).value();
  const Text text(prng, 4, config);
  const Floats params = stirred(prng, *cpu, 2e-3f);
  Floats gradient(params.size()), found(params.size());
  cpu->loss_and_gradient(params, text.batch, gradient);
  const Target target(7);
  if (!has_products(target)) return;
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    DeviceGpt gpt = DeviceGpt::create(*target.gpu, config, precision).value();
    const DeviceArray<float> on_params = copied(target, params), on_gradient = copied(target, found);
    BOOST_TEST_REQUIRE(gpt.loss_and_gradient(on_params, text.batch, on_gradient).ok());
    BOOST_TEST_REQUIRE(on_gradient.read(found.data(), found.size()).ok());
    for (const TensorInfo& tensor : cpu->layout().tensors()) {
      const double off = distance(part_of(found, tensor), part_of(gradient, tensor));
      BOOST_TEST(off < (precision == Precision::fp32 ? 1e-4 : 2e-2), tensor.name << ": " << off);
    }
  }
}

// A batch smaller than the last uses the same memory, a larger one more, an evaluation pieces of eight rows.
BOOST_AUTO_TEST_CASE(batches_of_changing_size) {
  Prng prng(93);
  const models::ModelConfig config = gpt_config(19, 6, 2, 1, 8);
  const std::unique_ptr<models::Model> cpu = models::make_gpt(config).value();
  const Target target(3);
  if (!has_products(target)) return;
  DeviceGpt gpt = DeviceGpt::create(*target.gpu, config, Precision::fp32, 19 * 10).value();
  const Floats params = stirred(prng, *cpu, 2e-3f);
  const DeviceArray<float> on_params = copied(target, params), on_gradient = copied(target, params);
  for (const std::uint32_t rows : {3u, 1u, 19u, 2u}) {
    const Text text(prng, rows, config);
    Floats gradient(params.size()), found(params.size());
    cpu->loss_and_gradient(params, text.batch, gradient);
    BOOST_TEST_REQUIRE(gpt.loss_and_gradient(on_params, text.batch, on_gradient).ok());
    BOOST_TEST_REQUIRE(on_gradient.read(found.data(), found.size()).ok());
    BOOST_TEST(distance(found, gradient) < 5e-5);
    const double expected = cpu->evaluate(params, text.batch).loss;
    BOOST_TEST(std::abs(gpt.evaluate(on_params, text.batch).value().loss - expected) < 1e-5 * (1 + expected));
  }
  BOOST_TEST(gpt.memory_bytes() >= sizeof(float) * 19 * 6 * 8 * (16 * 2 + 8));
}

BOOST_AUTO_TEST_CASE(too_wide_heads_and_too_little_memory_are_refused) {
  const Target target(0);
  const auto wide = DeviceGpt::create(*target.gpu, gpt_config(11, 4, 1, 1, 129), Precision::fp32);
  BOOST_TEST_REQUIRE(!wide.ok());
  BOOST_TEST(wide.error().text.find("raise model.heads") != std::string::npos);
  if (on_device()) return;  // its memory cannot be held back
  Prng prng(94);
  const models::ModelConfig config = gpt_config(11, 4, 1, 1, 4);
  const std::unique_ptr<models::Model> cpu = models::make_gpt(config).value();
  DeviceGpt gpt = DeviceGpt::create(*target.gpu, config, Precision::fp32).value();
  const DeviceArray<float> params = copied(target, start(*cpu)), gradient = copied(target, start(*cpu));
  const Text small(prng, 1, config), large(prng, 50, config);
  const float before = gpt.loss_and_gradient(params, small.batch, gradient).value();
  set_emulated_memory(1);
  const Result<float> failed = gpt.loss_and_gradient(params, large.batch, gradient);
  set_emulated_memory(0);
  BOOST_TEST_REQUIRE(!failed.ok());
  BOOST_TEST((failed.error().code == Errc::limit));
  BOOST_TEST(gpt.loss_and_gradient(params, small.batch, gradient).value() == before);  // goes on with what it has
}

BOOST_AUTO_TEST_SUITE_END()
