// DeviceTrainer beside ModelTrainer with steps of several mini-batches and with Muon: the same losses and changes, a
// checkpoint from either to the other, memory; on one GPU and on several.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>

#include "tests/gpu/models/learner.h"
#include "tests/gpu/models/model_support.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_local_steps)

namespace {

RunConfig in_rounds(RunConfig config, std::uint32_t steps = 3) {
  config.round_rules.local_steps = steps;  // 0: as the plan has it
  return config;
}

// All peers together have as many rows as two mini-batches.
RunConfig shared_out(RunConfig config) {
  config.global_batch = 2 * config.batch;
  return config;
}

RunConfig clipped(RunConfig config) {
  config.optimizer.clip = 0.5;
  return config;
}

Floats residual_of(const Learner& learner) {
  const std::span<const float> residual = learner.trainer->residual();
  return {residual.begin(), residual.end()};
}

// A step whose whole change stays in the residual.
StepPlan held(std::uint32_t batches) {
  return {.rate = 0.02, .density = 0.05, .batches = batches, .hold = true, .peers = 3};
}

// The sum of all differences as a share of the sum of magnitudes. A single parameter may be far off: a step of Adam is
// as long for a gradient that is nearly zero, whose sign may differ.
double apart(const Floats& got, const Floats& expected) {
  double off = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    off += std::abs(double{got[i]} - double{expected[i]});
    size += std::abs(double{expected[i]});
  }
  return got.size() == expected.size() && size > 0 ? off / size : 1;
}

// On a GPU the gradients differ by 5e-5 of their largest value. Where a matrix of them has small singular values, Muon
// makes more of that. In the emulation products are the CPU's.
double tolerance_of(const RunConfig& config) {
  return (config.optimizer.kind == "muon" ? 5e-3 : 5e-4) * (on_device() ? 1 : 0.02);
}

}  // namespace

// The changes of several rounds add up in the residual.
BOOST_AUTO_TEST_CASE(changes_are_those_of_the_cpu) {
  if (!has_products(Target())) return;
  const SmallText adamw, muon("muon");
  const RunConfig runs[] = {in_rounds(small_run("sgd")),  in_rounds(clipped(small_run("momentum"))),
                            in_rounds(small_run("adam")), in_rounds(adamw.config),
                            muon_run(),                   in_rounds(clipped(muon_run())),
                            muon.config,                  in_rounds(muon.config, 4)};
  std::size_t run = 0;
  for (const RunConfig& config : runs) {
    const std::size_t gpus = 1 + run++ % 3;
    if (gpus > 1 && !target_group(gpus)) continue;
    Learner gpu(make_device_trainer(config, run, gpus).value()), cpu(make_model_trainer(config));
    for (int step = 0; step < 3; ++step) {
      const StepResult there = gpu.step(held(0)), here = cpu.step(held(0));
      BOOST_TEST_REQUIRE(there.failure == "");
      BOOST_TEST(there.held);
      BOOST_TEST(there.samples == here.samples);
      BOOST_TEST(there.samples == config.batch * config.batches());
      BOOST_TEST(std::abs(there.loss - here.loss) < 1e-4 * (1 + here.loss));
      const double off = apart(residual_of(gpu), residual_of(cpu));
      BOOST_TEST(off < tolerance_of(config), config.optimizer.kind << ", run " << run << ": " << off);
    }
  }
}

// With updates on their way in between: losses, as long as both apply the same ones. The number of mini-batches is the
// plan's, and that of their rows may follow from its peers.
BOOST_AUTO_TEST_CASE(rounds_of_any_length_have_the_losses_of_the_cpu) {
  if (!has_products(Target())) return;
  const SmallText muon("muon");
  std::size_t run = 0;
  for (const RunConfig& config : {in_rounds(small_run("sgd"), 0), in_rounds(muon.config, 0),
                                  shared_out(in_rounds(muon.config, 0))}) {
    const std::size_t gpus = 1 + run++ % 3;
    if (gpus > 1 && !target_group(gpus)) continue;
    auto made = make_device_trainer(config, run, gpus).value();
    const DeviceTrainer& device = *made;
    Learner gpu(std::move(made)), cpu(make_model_trainer(config));
    BOOST_TEST(gpu.trainer->takes_batches());
    std::uint64_t seq = 0;
    const std::pair<std::uint32_t, std::size_t> rounds[] = {{4, 3}, {1, 3}, {4, 2}, {5, 4}, {2, 3}, {2, 1}};
    for (const auto& [batches, peers] : rounds) {
      StepPlan plan{.rate = 0.02, .density = 0.05, .batches = batches, .peers = peers};
      const StepResult there = gpu.step(plan), here = cpu.step(plan);
      BOOST_TEST_REQUIRE(there.failure == "");
      BOOST_TEST(there.samples == config.batch_rules().rows(peers) * batches);
      BOOST_TEST(std::abs(there.loss - here.loss) < 1e-4 * (1 + here.loss));
      BOOST_TEST(there.update.index.size() == here.update.index.size());
      const std::vector<float> view = device.device_view().value();
      const std::span<const float> shown = cpu.trainer->view().values;
      BOOST_TEST_REQUIRE(std::equal(view.begin(), view.end(), shown.begin(), shown.end()));
      for (Learner* one : {&gpu, &cpu}) one->take(here, ++seq);
    }
  }
}

// A peer that moves from a processor to a GPU, or back, goes on as it was.
BOOST_AUTO_TEST_CASE(a_checkpoint_goes_to_and_fro) {
  if (!has_products(Target())) return;
  const SmallText muon("muon");
  const RunConfig config = in_rounds(muon.config, 2);
  for (const bool to_gpu : {true, false}) {
    Learner gpu(make_device_trainer(config).value()), cpu(make_model_trainer(config));
    Learner &from = to_gpu ? cpu : gpu, &to = to_gpu ? gpu : cpu;
    for (int step = 0; step < 2; ++step)
      for (Learner* one : {&from, &to}) BOOST_TEST_REQUIRE(one->step(held(0)).failure == "");
    const Floats waits = residual_of(from);
    // Something else for the other one to forget.
    to.trainer->step(held(7));
    from.trainer->step(held(7));
    const Bytes state = from.trainer->optimizer_state();
    BOOST_TEST_REQUIRE(to.trainer->restore(waits, state).ok());
    BOOST_TEST_REQUIRE(from.trainer->restore(waits, state).ok());
    BOOST_TEST((to.trainer->optimizer_state() == state));
    BOOST_TEST(same_bits(residual_of(to), waits));
    for (Learner* one : {&from, &to}) BOOST_TEST_REQUIRE(one->step(held(0)).failure == "");
    BOOST_TEST(apart(residual_of(to), residual_of(from)) < tolerance_of(config));
  }
}

BOOST_AUTO_TEST_CASE(memory_is_what_a_round_and_muon_take) {
  if (!has_products(Target())) return;
  const auto use_of = [](const RunConfig& config) { return make_device_trainer(config).value()->memory(); };
  const MemoryUse plain = use_of(small_run("sgd")), rounds = use_of(in_rounds(small_run("sgd"))),
                  follows = use_of(in_rounds(small_run("sgd"), 0)), muon = use_of(muon_run()),
                  adamw = use_of([] {
                    RunConfig config = muon_run();
                    config.optimizer.kind = "adamw";
                    return config;
                  }());
  BOOST_TEST(rounds.view == 2 * plain.view);
  BOOST_TEST(rounds.gradient == 2 * plain.gradient);
  BOOST_TEST(rounds.optimizer == plain.optimizer);
  BOOST_TEST(follows.of_parameters() == rounds.of_parameters());
  BOOST_TEST(muon.view == adamw.view);
  BOOST_TEST(muon.gradient == 2 * adamw.gradient);
  // Here and there 4 bytes less for each of the 54 hidden parameters; there two arrays of 54, two of 36, and sums.
  BOOST_TEST(muon.optimizer >= adamw.optimizer - 2 * 4 * 54 + 8 * (54 + 36));
}

// The next step computes with the weights of the replica, on all GPUs.
BOOST_AUTO_TEST_CASE(a_round_that_fails_leaves_the_weights_alone) {
  if (on_device() || !has_products(Target())) return;  // its memory cannot be held back
  const RunConfig config = in_rounds(small_run("sgd"));
  Learner gpu(make_device_trainer(config, 0, 2).value()), undisturbed(make_device_trainer(config, 0, 2).value());
  set_emulated_memory(1);
  const std::string failure = gpu.step(held(0)).failure;
  set_emulated_memory(0);
  BOOST_TEST(failure.find("use a smaller model") != std::string::npos, failure);
  BOOST_TEST(undisturbed.step(held(0)).failure == "");
  // The failed round has drawn one mini-batch, the other one three.
  for (int more = 0; more < 2; ++more) BOOST_TEST(gpu.step(held(1)).failure == "");
  BOOST_TEST(gpu.step(held(0)).loss == undisturbed.step(held(0)).loss);
}

BOOST_AUTO_TEST_SUITE_END()
