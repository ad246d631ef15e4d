// The memory that a program's peer takes beside the program's own, counted: at most three and a half times its weights.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "runtime/base/prng.h"
#include "runtime/training/outside/outside_trainer.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(outside_memory)

namespace {

constexpr std::uint32_t memory_params = 1 << 20;
constexpr std::uint64_t weights_bytes = memory_params * sizeof(float);

// A program with one tensor, and the replica beside its trainer.
struct Program {
  std::vector<float> values = std::vector<float>(memory_params, 0.25f);
  ParamLayout layout = ParamLayout::create({{"all", {memory_params}}}).value();
  RunConfig config;
  std::unique_ptr<OutsideTrainer> trainer;
  std::unique_ptr<Replica> replica;
  Prng prng = Prng::named(1, "memory");
  std::uint64_t seq = 0;

  Program() {
    config.density = 0.001;
    const std::vector<OutsideTensor> tensors = {{OutsideTensor::Type::f32, values.data()}};
    auto start = on_grid(layout, tensors, config.grid_bits).value();
    trainer = OutsideTrainer::create(config, layout, tensors, {}, start).value();
    BOOST_TEST(trainer->memory().of_parameters() == 3 * weights_bytes);  // two of its own, and `start`
    replica = std::make_unique<Replica>(RunId{}, layout, std::move(start));
    trainer->follow(*replica);
  }

  void apply(compress::SparseUpdate update) {
    gossip::UpdateHeader header;
    header.key.seq = ++seq;
    replica->apply_own(header, std::move(update));
  }
  // An update of this plan goes out, and one of another peer comes in.
  void exchange(StepPlan plan) {
    plan.period = seq + 1;
    plan.peers = 2;
    StepResult result = trainer->step(plan);
    BOOST_REQUIRE_MESSAGE(result.failure.empty(), result.failure);
    compress::SparseUpdate other = result.update;
    apply(std::move(result.update));
    apply(std::move(other));
    trainer->follow(*replica);
  }
  // The loop makes `steps` steps with changes of this size, then one update goes out and one of another peer comes in.
  void update(std::uint32_t steps, float size) {
    for (float& value : values) value += size * (static_cast<float>(prng.below(2001)) - 1000);
    trainer->told({steps, 8 * steps, 0.5});
    exchange({.density = config.density});
  }
  // One update of a flush goes out and one of another peer comes in.
  void flush(double density) {
    exchange({.density = density, .flush = true});
  }
  // In sizes of the weights.
  double memory() const {
    const MemoryUse use = trainer->memory();
    const std::uint64_t bytes =
        use.of_parameters() + use.entries + use.in_flight + replica->weight_bytes() + replica->entry_bytes();
    return static_cast<double>(bytes) / static_cast<double>(weights_bytes);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(three_words_a_parameter_and_what_entries_take) {
  Program program;
  BOOST_TEST(program.trainer->memory().of_parameters() == 2 * weights_bytes);
  BOOST_TEST(program.trainer->memory().view == 0u);
  BOOST_TEST(program.replica->weight_bytes() == weights_bytes);
  for (int s = 0; s < 5; ++s) {
    program.update(1, 1e-6f);
    BOOST_TEST(program.memory() < 3.1);
  }
}

// Updates of many steps have many entries, and sizes that no guess foresees leave many candidates behind.
BOOST_AUTO_TEST_CASE(neither_many_steps_nor_leaps_in_size_go_beyond_the_bound) {
  Program program;
  for (const auto& [steps, size] : {std::pair(1u, 1e-7f), {10u, 1e-6f}, {20u, 1e-5f}, {5u, 1e-7f}, {20u, 2e-7f},
                                    {1u, 1e-8f}, {1u, 1e-8f}}) {
    program.update(steps, size);
    BOOST_TEST(program.memory() < 3.5, steps << " steps: " << program.memory());
  }
  BOOST_TEST(program.memory() < 3.1, program.memory());  // what the large ones took has been given back
}

BOOST_AUTO_TEST_CASE(a_flush_takes_no_more_than_training_and_ends_with_the_shared_weights) {
  Program program;
  for (int s = 0; s < 3; ++s) program.update(1, 1e-6f);
  for (int s = 0; s < 17; ++s) {
    program.values[7] = 0.5f;  // a loop that goes on changes nothing
    program.flush(0.05);
    BOOST_TEST(program.trainer->memory().of_parameters() == weights_bytes);
    BOOST_TEST(program.memory() < 3, program.memory());
  }
  program.trainer->load_shared();
  const std::span<const std::int32_t> shared = program.replica->weights();
  for (std::size_t i = 0; i < memory_params; ++i)
    BOOST_TEST_REQUIRE(program.values[i] == std::ldexp(static_cast<float>(shared[i]), -program.config.grid_bits));
}

// The snapshot takes the place of x as of the last step.
BOOST_AUTO_TEST_CASE(who_lacks_the_weights_has_room_for_a_snapshot) {
  Program program;
  program.trainer->await_weights();
  BOOST_TEST(program.trainer->memory().of_parameters() == weights_bytes);
  std::fill(program.values.begin(), program.values.end(), 7.0f);
  program.trainer->catch_up();
  BOOST_TEST(program.trainer->memory().of_parameters() == 2 * weights_bytes);
  BOOST_TEST(program.values[5] == 0.25f);  // the replica's
  program.values[5] = 0.5f;
  program.trainer->catch_up();
  BOOST_TEST(program.trainer->residual()[5] == 0.25f);
  BOOST_TEST(program.trainer->residual()[6] == 0.0f);
}

BOOST_AUTO_TEST_CASE(weights_that_were_awaited_in_vain_are_shown_nevertheless) {
  for (const auto show : {&OutsideTrainer::load_shared, &OutsideTrainer::show_shared, &OutsideTrainer::take_back}) {
    Program program;
    program.trainer->await_weights();
    std::fill(program.values.begin(), program.values.end(), 7.0f);
    (program.trainer.get()->*show)();
    BOOST_TEST(program.values[5] == 0.25f);
  }
}

BOOST_AUTO_TEST_CASE(the_weights_are_there_when_the_replica_is_gone) {
  Program program;
  program.update(1, 1e-6f);
  program.trainer->outlive(*program.replica);
  BOOST_TEST(program.replica->weight_bytes() == 0u);
  program.replica.reset();
  BOOST_TEST(program.trainer->memory().of_parameters() == 3 * weights_bytes);
  program.trainer->load_shared();
  BOOST_TEST(program.values[5] != 0.0f);
}

BOOST_AUTO_TEST_SUITE_END()
