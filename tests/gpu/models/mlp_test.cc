// DeviceMlp against models::Mlp: loss, gradient, evaluation and prediction; and training steps that never leave the
// device: gradient, optimizer and selection in one pass, and the update onto the weights.
#include "gpu/models/mlp.h"

#include <boost/test/unit_test.hpp>

#include "gpu/compress/compressor.h"
#include "models/families/mlp.h"
#include "tests/gpu/models/model_support.h"
#include "tests/gpu/kernels/numbers.h"
#include "tests/gpu/target.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_mlp)

namespace {

// Rows whose class is where their largest input of the first few is: easily learnt.
struct Rows {
  Floats x;
  std::vector<std::uint8_t> label;
  models::Batch batch;

  Rows(Prng& prng, std::uint32_t rows, const models::ModelConfig& config)
      : x(drawn(prng, std::size_t{rows} * config.inputs)), label(rows) {
    for (std::uint32_t r = 0; r < rows; ++r) {
      const auto begin = x.begin() + static_cast<std::ptrdiff_t>(std::size_t{r} * config.inputs);
      const auto some = std::min(config.inputs, config.classes);
      label[r] = static_cast<std::uint8_t>(std::max_element(begin, begin + some) - begin);
    }
    batch = {x, label, rows};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(loss_and_gradient_are_those_of_the_cpu) {
  Prng prng(81);
  std::uint64_t order = 0;
  struct Case {
    std::vector<std::uint32_t> hidden;
    std::uint32_t inputs, classes, rows;
  };
  for (const Case& c : {Case{{}, 1, 2, 1}, Case{{5}, 3, 2, 7}, Case{{33, 17}, 20, 10, 65}, Case{{40, 1, 9}, 13, 256, 3},
                        Case{{64, 64}, 50, 10, 130}}) {
    models::ModelConfig config;
    config.hidden = c.hidden;
    config.inputs = c.inputs;
    config.classes = c.classes;
    const std::unique_ptr<models::Model> cpu = models::make_mlp(config).value();
    const Rows rows(prng, c.rows, config);
    const Floats params = stirred(prng, *cpu);
    Floats gradient(params.size());
    const float loss = cpu->loss_and_gradient(params, rows.batch, gradient);
    const models::Evaluation evaluation = cpu->evaluate(params, rows.batch);
    Floats probability(cpu->predictions(c.rows));
    cpu->predict(params, rows.batch, probability);

    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      const double tolerance = precision == Precision::fp32 ? 1e-5 : 0.1;
      const Target target(order++);
      if (!has_products(target)) return;
      DeviceMlp mlp = DeviceMlp::create(*target.gpu, config, precision).value();
      const DeviceArray<float> on_params = copied(target, params), on_gradient = copied(target, gradient);
      for (int twice = 0; twice < 2; ++twice) {
        target.table().fill(target.device(), on_gradient.data(), 0xff, gradient.size() * sizeof(float));
        const Result<float> got = mlp.loss_and_gradient(on_params, rows.batch, on_gradient);
        BOOST_TEST_REQUIRE(got.ok());
        BOOST_TEST(std::abs(*got - loss) < tolerance * (1 + std::abs(loss)));
        Floats found(gradient.size());
        BOOST_TEST_REQUIRE(on_gradient.read(found.data(), found.size()).ok());
        BOOST_TEST(distance(found, gradient) < tolerance);
        if (precision == Precision::fp32) continue;
        BOOST_TEST(!same_bits(found, gradient));
      }
      if (precision != Precision::fp32) continue;
      const models::Evaluation seen = mlp.evaluate(on_params, rows.batch).value();
      BOOST_TEST(std::abs(seen.loss - evaluation.loss) < 1e-5 * (1 + evaluation.loss));
      BOOST_TEST(*seen.accuracy == *evaluation.accuracy);
      Floats shares(probability.size());
      BOOST_TEST_REQUIRE(mlp.predict(on_params, rows.batch, shares).ok());
      BOOST_TEST(distance(shares, probability) < 1e-5);
    }
  }
}

// A batch smaller than the last uses the same memory, a larger one more; nothing of the one before shows.
BOOST_AUTO_TEST_CASE(batches_of_changing_size) {
  Prng prng(82);
  models::ModelConfig config;
  config.hidden = {19};
  config.inputs = 12;
  config.classes = 5;
  const std::unique_ptr<models::Model> cpu = models::make_mlp(config).value();
  const Target target(3);
  if (!has_products(target)) return;
  DeviceMlp mlp = DeviceMlp::create(*target.gpu, config, Precision::fp32).value();
  const Floats params = start(*cpu);
  const DeviceArray<float> on_params = copied(target, params), on_gradient = copied(target, params);
  for (const std::uint32_t size : {8u, 3u, 90u, 1u}) {
    const Rows rows(prng, size, config);
    Floats gradient(params.size()), got(params.size());
    cpu->loss_and_gradient(params, rows.batch, gradient);
    BOOST_TEST_REQUIRE(mlp.loss_and_gradient(on_params, rows.batch, on_gradient).ok());
    BOOST_TEST_REQUIRE(on_gradient.read(got.data(), got.size()).ok());
    BOOST_TEST(distance(got, gradient) < 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(training_steps_that_stay_on_the_device) {
  models::ModelConfig config;
  config.hidden = {24};
  config.inputs = 16;
  config.classes = 4;
  const std::unique_ptr<models::Model> cpu = models::make_mlp(config).value();
  const std::uint32_t params = cpu->layout().params();
  const LargeVector<std::int32_t> initial = models::initial_weights(*cpu, 5, 24);
  const Target target(6);
  if (!has_products(target)) return;
  DeviceMlp mlp = DeviceMlp::create(*target.gpu, config, Precision::fp32).value();
  DeviceCompressor compressor = DeviceCompressor::create(*target.gpu, mlp.layout(), {.density = 0.2}).value();
  const DeviceArray<float> view = copied(target, start(*cpu)), gradient = copied(target, Floats(params)),
                           velocity = copied(target, Floats(params, 0.0f));
  const auto weights = DeviceArray<std::int32_t>::create(*target.gpu, params, "a test").value();
  weights.write(initial.data(), params);
  Prng prng(83);
  const Rows rows(prng, 48, config);
  DeviceUpdate update;
  std::vector<float> losses;
  for (int step = 0; step < 40; ++step) {
    losses.push_back(mlp.loss_and_gradient(view, rows.batch, gradient).value());
    const StepRule rule{.kind = StepRule::Kind::momentum, .factor = -0.1f, .keep1 = 0.8f, .first = velocity.data()};
    BOOST_TEST_REQUIRE(compressor.absorb_step(rule, gradient, update).ok());
    const Entries entries = update.entries();
    target.table().apply(target.device(), &entries, weights.data(), view.data(), 0x1p-24f);
  }
  BOOST_TEST(losses.front() > 1.0f);
  BOOST_TEST(losses.back() < 0.5f * losses.front());
  // The weights on the grid are what the view shows, and the CPU finds the same loss there.
  std::vector<std::int32_t> grid(params);
  Floats shown(params);
  BOOST_TEST_REQUIRE(weights.read(grid.data(), params).ok());
  BOOST_TEST_REQUIRE(view.read(shown.data(), params).ok());
  for (std::uint32_t i = 0; i < params; ++i) BOOST_TEST_REQUIRE(shown[i] == static_cast<float>(grid[i]) * 0x1p-24f);
  BOOST_TEST(std::abs(cpu->evaluate(shown, rows.batch).loss - mlp.evaluate(view, rows.batch)->loss) < 1e-5);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_said) {
  const Target target;
  models::ModelConfig config;
  config.inputs = 3;
  config.classes = 1;
  const Result<DeviceMlp> none = DeviceMlp::create(*target.gpu, config, Precision::fp32);
  BOOST_TEST_REQUIRE(!none.ok());
  BOOST_TEST(none.error().text.find("2 to 256 classes") != std::string::npos);
  config.classes = 4;
  Prng prng(84);
  Rows rows(prng, 2, config);
  DeviceMlp mlp = DeviceMlp::create(*target.gpu, config, Precision::fp32).value();
  const DeviceArray<float> params = copied(target, Floats(mlp.layout().params(), 0.0f));
  const Floats soft(8, 0.25f);
  rows.batch.soft = {soft, 0.5f};
  const Result<float> refused = mlp.loss_and_gradient(params, rows.batch, params);
  BOOST_TEST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == Errc::usage));
  if (on_device()) return;
  set_emulated_memory(1 << 20);
  const Target small;
  DeviceMlp large = DeviceMlp::create(*small.gpu, config, Precision::fp32).value();
  const DeviceArray<float> few = copied(small, Floats(large.layout().params(), 0.0f));
  const Rows many(prng, 5000, config);
  const Result<float> full = large.loss_and_gradient(few, many.batch, few);
  set_emulated_memory(0);
  BOOST_TEST_REQUIRE(!full.ok());
  BOOST_TEST((full.error().code == Errc::limit));
  BOOST_TEST(full.error().text.find("activations") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
