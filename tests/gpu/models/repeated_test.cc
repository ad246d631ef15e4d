// Work that is recorded and repeated: done as often as it is asked for, by the host only twice; and steps of models
// that are the same to the bit, with whatever happens between them.
#include "gpu/device/repeated.h"

#include <boost/test/unit_test.hpp>

#include "gpu/device/products.h"
#include "gpu/models/split_model.h"
#include "tests/gpu/models/drawn_batch.h"
#include "tests/gpu/models/model_support.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_repeated)

namespace {

// Doubles a number on the device, and counts how often the host does so.
struct Doubler {
  Target target{1};
  DeviceArray<float> number = copied(target, {1});
  Repeated repeated{*target.gpu};
  int begun = 0;

  Result<void> begin() {
    ++begun;
    target.table().model.scale(target.device(), 1, 2.0f, number.data());
    return {};
  }
  float run(std::uint64_t key) {
    BOOST_TEST_REQUIRE(repeated.run({key}, [&] { return begin(); }).ok());
    return value();
  }
  float value() const {
    float value = 0;
    BOOST_TEST_REQUIRE(number.read(&value, 1).ok());
    return value;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_the_same_is_begun_by_the_host_twice) {
  Doubler doubler;
  for (const float expected : {2.0f, 4.0f, 8.0f, 16.0f, 32.0f}) BOOST_TEST(doubler.run(7) == expected);
  BOOST_TEST(doubler.begun == 2);
  BOOST_TEST(doubler.repeated.repeats() == 4u);
  // Another key is another work, and so is the first one afterwards.
  for (const std::uint64_t key : {8u, 8u, 8u, 7u, 8u, 7u, 7u}) doubler.run(key);
  BOOST_TEST(doubler.value() == 4096.0f);
  BOOST_TEST(doubler.begun == 2 + 2 + 4);
  Repeated moved = std::move(doubler.repeated);
  BOOST_TEST_REQUIRE(moved.run({7}, [&] { return doubler.begin(); }).ok());
  BOOST_TEST(doubler.value() == 8192.0f);
  BOOST_TEST(doubler.begun == 8);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_recorded_is_done_all_the_same) {
  // Something between that happens at once; an error, which a recording would have hidden.
  for (const bool fails : {false, true}) {
    Doubler doubler;
    int asked = 0;
    const auto begin = [&]() -> Result<void> {
      const bool second = ++asked == 2;
      if (fails && second) return Error{Errc::io, "not this way"};
      if (!fails) static_cast<void>(DeviceArray<float>::create(*doubler.target.gpu, 100, "a test"));
      return doubler.begin();
    };
    for (int run = 0; run < 5; ++run) BOOST_TEST_REQUIRE(doubler.repeated.run({1}, begin).ok());
    BOOST_TEST(doubler.value() == 32.0f);
    BOOST_TEST(doubler.repeated.repeats() == 0u);
    BOOST_TEST(asked == 6);  // the second time recorded in vain, and never again
  }
  Doubler refused;
  const auto never = [] { return Result<void>(Error{Errc::limit, "no room"}); };
  BOOST_TEST(refused.repeated.run({1}, never).error().text == "no room");
  if (on_device()) return;
  set_emulated_recording(false);
  Doubler plain;
  for (const float expected : {2.0f, 4.0f, 8.0f, 16.0f}) BOOST_TEST(plain.run(1) == expected);
  set_emulated_recording(true);
  BOOST_TEST(plain.begun == 4);
}

// The same steps on a model that is never recorded, as long as both see the same batches and parameters.
BOOST_AUTO_TEST_CASE(steps_of_models_are_the_same_to_the_bit) {
  if (!has_products(Target())) return;
  Prng prng(61);
  std::vector<models::ModelConfig> configs = test_models();
  configs.push_back(small_llama(29, 3, 2, 1, 4));
  configs.back().qkv_bias = true;
  for (const models::ModelConfig& config : configs)
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      if (config.family == "llama" && precision == Precision::fp32) continue;  // enough
      Floats start = stirred(prng, *models::make_model(config).value(), 2e-3f);
      const Target target(4);
      const auto gpus = target_group(1, 4);
      const auto plain = make_device_model(*target.gpu, config, precision).value();
      SplitModel repeated = SplitModel::create(*gpus, config, precision).value();
      const DeviceArray<float> params = copied(target, start), gradient = copied(target, start);
      const auto other_params = DeviceArray<float>::create(gpus->first(), start.size(), "a test").value();
      const auto other_gradient = DeviceArray<float>::create(gpus->first(), start.size(), "a test").value();
      // Larger and smaller batches, and an evaluation that needs more room than any before.
      for (const std::uint32_t rows : {3u, 3u, 3u, 3u, 2u, 3u, 3u, 3u, 5u, 5u, 5u, 5u}) {
        start[prng.below(start.size())] += 0.01f;
        params.write(start.data(), start.size());
        other_params.write(start.data(), start.size());
        const DrawnBatch drawn(prng, rows, config);
        const Result<float> expected = plain->loss_and_gradient(params, drawn.batch, gradient);
        const Result<float> got = repeated.loss_and_gradient(other_params, drawn.batch, other_gradient);
        BOOST_TEST_REQUIRE((expected.ok() && got.ok()));
        BOOST_TEST(*got == *expected);
        Floats here(start.size()), there(start.size());
        BOOST_TEST_REQUIRE(gradient.read(here.data(), here.size()).ok());
        BOOST_TEST_REQUIRE(other_gradient.read(there.data(), there.size()).ok());
        BOOST_TEST(same_bits(here, there));
        if (repeated.repeats() % 3 != 2) continue;
        const DrawnBatch large(prng, 2 * rows + 1, config);
        BOOST_TEST(plain->evaluate(params, large.batch)->loss == repeated.evaluate(other_params, large.batch)->loss);
      }
      BOOST_TEST(repeated.repeats() >= 4u);
    }
}

// Memory that the products own may move, though the model's memory stays.
BOOST_AUTO_TEST_CASE(a_recording_whose_memory_moved_is_made_anew) {
  if (!has_products(Target())) return;
  Prng prng(62);
  const models::ModelConfig config = test_models().front();
  const auto gpus = target_group(1);
  SplitModel model = SplitModel::create(*gpus, config, Precision::bf16).value();
  const Floats start = stirred(prng, *models::make_model(config).value());
  const auto params = DeviceArray<float>::create(gpus->first(), start.size(), "a test").value();
  const auto gradient = DeviceArray<float>::create(gpus->first(), start.size(), "a test").value();
  params.write(start.data(), start.size());
  const DrawnBatch drawn(prng, 4, config);
  std::vector<float> losses;
  const auto step = [&] { losses.push_back(model.loss_and_gradient(params, drawn.batch, gradient).value()); };
  for (int i = 0; i < 4; ++i) step();
  BOOST_TEST(model.repeats() == 3u);
  const std::uint32_t side = 1000;
  const auto large = DeviceArray<float>::create(gpus->first(), side * 3, "a test").value();
  const auto square = DeviceArray<float>::create(gpus->first(), side * side, "a test").value();
  MatmulArgs args = product(side, side, 3, large.data(), large.data(), square.data());
  args.precision = Precision::bf16;
  BOOST_TEST_REQUIRE(gpus->first().matmul(args).ok());
  for (int i = 0; i < 3; ++i) step();
  BOOST_TEST(model.repeats() == 6u);
  for (const float loss : losses) BOOST_TEST(loss == losses.front());
}

BOOST_AUTO_TEST_SUITE_END()
