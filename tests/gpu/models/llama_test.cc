// DeviceLlama against models::Llama, with each of the family's options: loss, the gradient of each tensor, evaluation.
#include "gpu/models/llama.h"

#include <boost/test/unit_test.hpp>

#include "tests/gpu/models/drawn_batch.h"
#include "tests/gpu/models/model_support.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_llama)

namespace {

struct Case {
  models::ModelConfig config;
  std::uint32_t rows;
  std::size_t logits;
  std::vector<Precision> precisions = {Precision::fp32, Precision::bf16};
};

// Heads of their own; grouped heads that are not embedding / heads wide; Qwen2's biases; all options at once.
std::vector<Case> cases() {
  models::ModelConfig plain = small_llama(37, 9, 4, 4, 16);
  models::ModelConfig grouped = small_llama(53, 34, 4, 2, 20);
  grouped.head_size = 14;
  grouped.feed_forward = 30;
  grouped.norm_epsilon = 1e-2;
  models::ModelConfig biased = small_llama(23, 20, 2, 1, 12);
  biased.qkv_bias = true;
  biased.rope_scaling = {models::RotaryScaling::Kind::linear, 2, 1, 4, 32};
  models::ModelConfig all = small_llama(11, 12, 4, 2, 16);
  all.layers = 2;
  all.head_size = 6;
  all.feed_forward = 24;
  all.rope_base = 100;
  all.rope_scaling = {models::RotaryScaling::Kind::llama3, 8, 1, 4, 16};
  all.tied_head = false;
  all.qkv_bias = true;
  models::ModelConfig least = small_llama(2, 1, 1, 1, 2);
  least.tied_head = false;
  return {{plain, 2, 37 * 5},
          {grouped, 1, 1 << 20},
          {biased, 2, 23 * 40},
          {all, 3, 1, {Precision::fp32, Precision::tf32, Precision::bf16}},
          {least, 1, 1}};
}

// A bias adds the same to all keys of a head. The softmax takes that out again, but for the rotation between keys. What
// is left of this gradient is a small difference of large sums, in which rounding shows more.
bool is_bias_of_keys(const TensorInfo& tensor) {
  return tensor.name.ends_with("k_proj.bias");
}

std::string refusal(const models::ModelConfig& config) {
  const Target target(0);
  const auto made = DeviceLlama::create(*target.gpu, config, Precision::fp32);
  return made.ok() ? std::string() : made.error().text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(loss_and_gradient_are_those_of_the_cpu) {
  Prng prng(1);
  std::uint64_t order = 0;
  for (const Case& c : cases()) {
    const std::unique_ptr<models::Model> cpu = models::make_model(c.config).value();
    const DrawnBatch text(prng, c.rows, c.config);
    const Floats params = stirred(prng, *cpu, 2e-3f);
    Floats gradient(params.size());
    const float loss = cpu->loss_and_gradient(params, text.batch, gradient);
    const double evaluated = cpu->evaluate(params, text.batch).loss;
    for (const Precision precision : c.precisions) {
      const double tolerance = precision == Precision::fp32 ? 5e-5 : 2e-2;
      const Target target(order++);
      if (!has_products(target)) return;
      DeviceLlama llama = DeviceLlama::create(*target.gpu, c.config, precision, c.logits).value();
      const DeviceArray<float> on_params = copied(target, params), on_gradient = copied(target, gradient);
      Floats found(gradient.size()), again(gradient.size());
      for (Floats* into : {&found, &again}) {
        target.table().fill(target.device(), on_gradient.data(), 0xff, gradient.size() * sizeof(float));
        const Result<float> got = llama.loss_and_gradient(on_params, text.batch, on_gradient);
        BOOST_TEST_REQUIRE(got.ok());
        BOOST_TEST(std::abs(*got - loss) < tolerance * (1 + std::abs(loss)));
        BOOST_TEST_REQUIRE(on_gradient.read(into->data(), into->size()).ok());
      }
      BOOST_TEST(distance(found, gradient) < tolerance);
      BOOST_TEST(same_bits(found, again));
      for (const TensorInfo& tensor : cpu->layout().tensors()) {
        const double off = distance(part_of(found, tensor), part_of(gradient, tensor));
        const double most = precision == Precision::fp32 ? 1e-4 : is_bias_of_keys(tensor) ? 5e-2 : 2e-2;
        BOOST_TEST(off < most, tensor.name << ": " << off);
      }
      if (precision != Precision::fp32) continue;
      const models::Evaluation seen = llama.evaluate(on_params, text.batch).value();
      BOOST_TEST(std::abs(seen.loss - evaluated) < tolerance * (1 + evaluated));
      BOOST_TEST(!seen.accuracy.has_value());
    }
  }
}

// A batch smaller than the last uses the same memory, a larger one more, an evaluation pieces of eight rows.
BOOST_AUTO_TEST_CASE(batches_of_changing_size) {
  Prng prng(96);
  models::ModelConfig config = small_llama(19, 6, 2, 1, 8);
  config.qkv_bias = true;
  const std::unique_ptr<models::Model> cpu = models::make_model(config).value();
  const Target target(3);
  if (!has_products(target)) return;
  DeviceLlama llama = DeviceLlama::create(*target.gpu, config, Precision::fp32, 19 * 10).value();
  const Floats params = stirred(prng, *cpu, 2e-3f);
  const DeviceArray<float> on_params = copied(target, params), on_gradient = copied(target, params);
  for (const std::uint32_t rows : {3u, 1u, 11u, 2u}) {
    const DrawnBatch text(prng, rows, config);
    Floats gradient(params.size()), found(params.size());
    cpu->loss_and_gradient(params, text.batch, gradient);
    BOOST_TEST_REQUIRE(llama.loss_and_gradient(on_params, text.batch, on_gradient).ok());
    BOOST_TEST_REQUIRE(on_gradient.read(found.data(), found.size()).ok());
    BOOST_TEST(distance(found, gradient) < 5e-5);
    const double expected = cpu->evaluate(params, text.batch).loss;
    BOOST_TEST(std::abs(llama.evaluate(on_params, text.batch).value().loss - expected) < 1e-5 * (1 + expected));
  }
}

BOOST_AUTO_TEST_CASE(what_is_not_possible_is_refused) {
  models::ModelConfig wide = small_llama(11, 4, 1, 1, 4);
  wide.head_size = 130;
  BOOST_TEST(refusal(wide).find("lower model.head_size") != std::string::npos);
  BOOST_TEST(refusal(small_llama(65'537, 4, 1, 1, 2)).find("65536 tokens are the most") != std::string::npos);
  BOOST_TEST(refusal(small_llama(11, 4, 3, 2, 6)).find("must divide model.heads") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
