// DeviceTrainer beside ModelTrainer: the same losses, as long as both apply the same updates; weights on the GPU that
// are the replica's; a restart that goes on to the bit; and what is refused.
#include "runtime/training/device_trainer.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/gpu/models/learner.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_trainer)

namespace {

RunConfig small_cnn() {
  RunConfig config = small_run("momentum");
  config.model.family = "cnn";
  config.model.stage_channels = {4, 4};
  config.model.blocks = 1;
  config.model.groups = 2;
  config.model.hidden = {};
  return config;
}

}  // namespace

// On one GPU and on several.
BOOST_AUTO_TEST_CASE(losses_are_those_of_the_cpu) {
  if (!has_products(Target())) return;
  const SmallText text;
  RunConfig clipped = small_run("sgd");
  clipped.optimizer.clip = 0.5;
  const auto runs = {small_run("sgd"), clipped, small_run("momentum"), small_run("adamw"), small_cnn(), text.config};
  std::size_t run = 0;
  for (const RunConfig& config : runs) {
    const std::size_t gpus = 1 + run++ % 3;
    if (gpus > 1 && !target_group(gpus)) continue;
    auto on_gpu = make_device_trainer(config, 3, gpus);
    BOOST_TEST_REQUIRE(on_gpu.ok());
    const DeviceTrainer& device = **on_gpu;
    Learner gpu(std::move(on_gpu).value());
    Learner cpu(make_model_trainer(config));
    BOOST_TEST((gpu.replica.weights().size() == cpu.replica.weights().size()));
    for (std::uint64_t step = 1; step <= 12; ++step) {
      // Few entries are sent to their places on all GPUs; with many, the whole view is sent to the other GPUs.
      const double density = step % 4 == 0 ? 0.9 : 0.05;
      const StepResult there = gpu.step(density), here = cpu.step(density);
      BOOST_TEST_REQUIRE(there.failure == "");
      // The GPU computed with the same view as the CPU.
      const std::vector<float> view = device.device_view().value();
      const std::span<const float> shown = cpu.trainer->view().values;
      BOOST_TEST_REQUIRE(std::equal(view.begin(), view.end(), shown.begin(), shown.end()));
      BOOST_TEST(std::abs(there.loss - here.loss) < 1e-4 * (1 + here.loss));
      BOOST_TEST(there.update.index.size() == here.update.index.size());
      BOOST_TEST((compress::decode(gpu.trainer->layout(), there.payload).value() == there.update));
      BOOST_TEST(there.compression->tensors.size() == here.compression->tensors.size());
      const double threshold = here.compression->threshold;
      BOOST_TEST(std::abs(there.compression->threshold - threshold) < 1e-3 * threshold);
      // Both take the CPU's, so that they stay together.
      for (Learner* one : {&gpu, &cpu}) one->take(here, step);
    }
  }
}

// The second replica says of itself what the GPU does not hold.
BOOST_AUTO_TEST_CASE(weights_that_are_not_the_replicas_are_told) {
  const RunConfig config = small_run("sgd");
  if (!has_products(Target())) return;
  for (const bool evaluates : {false, true}) {
    Learner one(make_device_trainer(config).value());
    Learner other(make_device_trainer(config).value());
    const StepResult step = one.step(0.1);
    BOOST_TEST_REQUIRE(step.failure == "");
    other.take(step, 1);
    BOOST_TEST(!other.replica.hand_over());
    one.trainer->follow(other.replica);
    if (evaluates) BOOST_TEST(std::isnan(one.trainer->evaluate({}, 10).loss));
    const StepResult after = one.trainer->step({.rate = 0.02, .density = 0.1, .period = 2, .survey = !evaluates});
    BOOST_TEST(after.failure.find("not those of the replica") != std::string::npos, after.failure);
    BOOST_TEST(after.payload.empty());
    if (!evaluates) continue;
    one.take(step, 1);
    BOOST_TEST(one.step(0.1).failure == "");
  }
}

// In the emulation it is known what crosses the bus.
BOOST_AUTO_TEST_CASE(only_payloads_of_others_are_sent) {
  if (on_device()) return;
  RunConfig config = small_run("sgd");
  config.model.hidden = {200};
  Learner one(make_device_trainer(config).value()), other(make_device_trainer(config, 3).value());
  other.step(0.2);
  for (std::uint64_t step = 1; step <= 5; ++step) {
    const StepResult theirs = other.step(0.2), own = one.step(0.2);
    for (Learner* learner : {&one, &other}) {
      learner->take(theirs, 2 * step);
      learner->take(own, 2 * step + 1);
    }
    const std::uint64_t before = emulated_bytes_in();
    one.trainer->follow(one.replica);
    const std::uint64_t sent = emulated_bytes_in() - before, beside = 512;  // parts, segments and steps
    BOOST_TEST(sent >= theirs.payload.size());
    BOOST_TEST(sent < theirs.payload.size() + beside);
    BOOST_TEST(own.payload.size() > beside);
    BOOST_TEST(4 * own.update.index.size() > theirs.payload.size() + beside);
    InFlightView in_flight(one.trainer->layout(), 1.0);
    one.trainer->expect(one.replica, in_flight);
  }
}

BOOST_AUTO_TEST_CASE(an_evaluation_that_fails_is_told_at_the_next_step) {
  if (on_device()) return;  // its memory cannot be held back
  Learner gpu(make_device_trainer(small_run("sgd")).value());
  BOOST_TEST_REQUIRE(gpu.step(0.1).failure == "");
  set_emulated_memory(1);  // a test set has larger batches
  const std::vector<float> weights(gpu.trainer->layout().params());
  BOOST_TEST(std::isnan(gpu.trainer->evaluate(weights, 1000).loss));
  set_emulated_memory(0);
  const std::string failure = gpu.step(0.1).failure;
  BOOST_TEST(failure.find("use a smaller model") != std::string::npos, failure);
  BOOST_TEST(gpu.step(0.1).failure == "");
}

BOOST_AUTO_TEST_CASE(a_restart_goes_on_to_the_bit) {
  if (!has_products(Target())) return;
  for (const char* optimizer : {"momentum", "rmsprop", "adamw", "muon"}) {
    RunConfig config = small_run(optimizer);
    if (config.optimizer.kind == "muon") config = muon_run();
    Learner first(make_device_trainer(config).value()), undisturbed(make_device_trainer(config).value());
    for (int step = 0; step < 3; ++step) BOOST_TEST((first.step(0.05).payload == undisturbed.step(0.05).payload));
    // Another one that has drawn as many batches, with nothing of its own left.
    Learner second(make_device_trainer(config, 5).value());
    for (int step = 0; step < 3; ++step) second.step(0.5);
    const std::span<const float> residual = first.trainer->residual();
    BOOST_TEST_REQUIRE(second.trainer->restore(residual, first.trainer->optimizer_state()).ok());
    const StepResult one = first.step(0.05), two = second.step(0.05);
    BOOST_TEST(one.loss == two.loss);
    BOOST_TEST((one.payload == two.payload));
    BOOST_TEST((one.payload == undisturbed.step(0.05).payload));
    BOOST_TEST(!second.trainer->restore(residual.first(3), first.trainer->optimizer_state()).ok());
    BOOST_TEST(!second.trainer->restore(residual, Bytes{1, 2}).ok());
  }
}

BOOST_AUTO_TEST_CASE(what_is_held_back_waits) {
  const RunConfig config = small_run("sgd");
  if (!has_products(Target())) return;
  Learner gpu(make_device_trainer(config).value());
  gpu.trainer->follow(gpu.replica);
  const StepResult held = gpu.trainer->step({.rate = 0.02, .density = 0.1, .period = 1, .hold = true});
  BOOST_TEST(held.held);
  BOOST_TEST(held.update.index.empty());
  const std::span<const float> residual = gpu.trainer->residual();
  BOOST_TEST(gpu.trainer->residual().data() == residual.data());  // who has asked before still may look
  BOOST_TEST(std::any_of(residual.begin(), residual.end(), [](float value) { return value != 0; }));
  // On the GPU and here.
  const std::uint64_t params = gpu.trainer->layout().params();
  const MemoryUse use = gpu.trainer->memory();
  BOOST_TEST(use.residual == 8 * params);
  BOOST_TEST(use.weights == 4 * params);
  BOOST_TEST(use.view == 4 * params);
  BOOST_TEST(use.gradient == 4 * params);
  BOOST_TEST(use.optimizer == 0u);
  const std::uint32_t inputs = gpu.trainer->layout().tensors()[0].cols();
  BOOST_TEST(use.activations >= 4 * config.batch * (inputs + 8 + 10u));
}

// A flush has no gradient, so its bits are those of the CPU.
BOOST_AUTO_TEST_CASE(what_waits_is_flushed_and_dropped_as_on_the_cpu) {
  RunConfig config = small_run("sgd");
  config.residual_decay = 0.5;
  Learner gpu(make_device_trainer(config).value()), cpu(make_model_trainer(config));
  std::vector<float> residual(gpu.trainer->layout().params());
  Prng prng(4);
  for (float& one : residual) one = static_cast<float>(prng.below(2001)) * 1e-4f - 0.1f;
  const Bytes state = cpu.trainer->optimizer_state();
  for (Learner* one : {&gpu, &cpu}) BOOST_TEST_REQUIRE(one->trainer->restore(residual, state).ok());
  for (int flush = 0; flush < 3; ++flush) {
    const StepPlan plan{.density = 0.1, .flush = true};
    const StepResult there = gpu.step(plan), here = cpu.step(plan);
    BOOST_TEST_REQUIRE(there.failure == "");
    BOOST_TEST((there.payload == here.payload));
    BOOST_TEST(!there.payload.empty());
    BOOST_TEST(there.samples == 0u);
    BOOST_TEST(!there.held);
  }
  const auto left = gpu.trainer->residual(), right = cpu.trainer->residual();
  BOOST_TEST((std::equal(left.begin(), left.end(), right.begin(), right.end())));
  BOOST_TEST(gpu.step({.density = 0.1, .flush = true, .drop_residual = true}).held);
}

BOOST_AUTO_TEST_CASE(evaluation_is_that_of_the_cpu) {
  if (!has_products(Target())) return;
  const SmallText text;
  for (const RunConfig& config : {small_run("sgd"), small_cnn(), text.config}) {
    Learner gpu(make_device_trainer(config).value());
    Learner cpu(make_model_trainer(config));
    cpu.trainer->follow(cpu.replica);
    gpu.trainer->follow(gpu.replica);
    const auto here = cpu.trainer->evaluate(cpu.trainer->view().values, 100);
    // Evaluates the trainer's own weights, then weights that are given.
    for (const std::span<const float> weights : {{}, std::span<const float>(cpu.trainer->view().values)}) {
      const auto there = gpu.trainer->evaluate(weights, 100);
      BOOST_TEST(std::abs(there.loss - here.loss) < 1e-5 * (1 + here.loss));
      BOOST_TEST((there.accuracy == here.accuracy));
    }
  }
}

BOOST_AUTO_TEST_CASE(products_are_as_precise_as_the_run_file_says) {
  if (!has_products(Target())) return;
  RunConfig config = small_run("sgd");
  const double exact = Learner(make_device_trainer(config).value()).step(0.1).loss;
  config.precision = "bf16";
  const double rounded = Learner(make_device_trainer(config).value()).step(0.1).loss;
  BOOST_TEST(rounded != exact);
  BOOST_TEST(std::abs(rounded - exact) < 0.1 * exact);
}

BOOST_AUTO_TEST_CASE(what_a_gpu_does_not_do_is_refused) {
  RunConfig revised = small_run("adaptive_revision");
  RunConfig paid = small_run("sgd"), budgeted = small_run("sgd");
  paid.bytes_per_update = 100;
  budgeted.bytes_per_second = 2000;
  RunConfig shared = small_run("sgd");
  shared.hogwild = 2;
  RunConfig growing = small_run("sgd");
  growing.resolution = {{{0, 4}, {0.5, 8}}};
  for (const RunConfig& config : {revised, paid, budgeted, shared, growing}) {
    const auto refused = make_device_trainer(config);
    BOOST_TEST_REQUIRE(!refused.ok());
    BOOST_TEST(refused.error().text.find("--device cpu") != std::string::npos);
    BOOST_TEST((refused.error().code == Errc::usage));
  }
  BOOST_TEST(make_device_trainer(paid).error().text.find("compress.bytes_per_update = 100 ") == 0u);
  BOOST_TEST(make_device_trainer(revised).error().text.find("optimizer.kind = \"adaptive_revision\" ") == 0u);
  BOOST_TEST(make_device_trainer(shared).error().text.find("optimizer.hogwild = 2 ") == 0u);
  BOOST_TEST(make_device_trainer(growing).error().text.find("data.resolution ") == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
