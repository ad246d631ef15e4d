// The drift of an outside loop: what leaves it, what comes in, and that nothing is lost on the way.
#include "runtime/training/outside/outside_trainer.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "runtime/base/prng.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(outside_trainer)

namespace {

// From -1 to 1.
float noise(Prng& prng) { return static_cast<float>(prng.below(2001)) * 1e-3f - 1; }

constexpr std::uint32_t rows = 30, cols = 20, bias = 7;
constexpr std::uint32_t params = rows * cols + bias;

std::uint16_t bf16_of(float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16); }
float float_of(std::uint16_t word) { return std::bit_cast<float>(std::uint32_t{word} << 16); }

// A loop with a matrix of floats and a bias of bfloat16, and the replica beside it.
struct Loop {
  std::vector<float> matrix = std::vector<float>(rows * cols, 0.25f);
  std::vector<std::uint16_t> offset = std::vector<std::uint16_t>(bias, bf16_of(0.5f));
  std::vector<std::uint8_t> own = {1, 2, 3};
  ParamLayout layout = ParamLayout::create({{"matrix", {rows, cols}}, {"bias", {bias}}}).value();
  RunConfig config;
  std::unique_ptr<OutsideTrainer> trainer;
  std::unique_ptr<Replica> replica;
  std::uint64_t seq = 0;

  explicit Loop(double density = 0.05) {
    config.density = density;
    const std::vector<OutsideTensor> tensors = {{OutsideTensor::Type::f32, matrix.data()},
                                                {OutsideTensor::Type::bf16, offset.data()}};
    auto start = on_grid(layout, tensors, config.grid_bits);
    BOOST_REQUIRE(start.ok());
    replica = std::make_unique<Replica>(RunId{}, layout, *start);
    trainer = OutsideTrainer::create(config, layout, tensors, {own}, *start).value();
    trainer->follow(*replica);
  }

  // As a node does it.
  void apply(compress::SparseUpdate update) {
    gossip::UpdateHeader header;
    header.key.seq = ++seq;
    header.fingerprint = replica->fingerprinter().of_update(layout, update);
    BOOST_REQUIRE(replica->apply(header, std::move(update)).ok());
  }
  StepResult step(std::size_t peers, bool hold = false, std::uint32_t steps = 1) {
    trainer->told({steps, 8, 0.5});
    StepPlan plan{.density = config.density, .period = 3, .hold = hold};
    plan.peers = peers;
    StepResult result = trainer->step(plan);
    BOOST_REQUIRE_MESSAGE(result.failure.empty(), result.failure);
    if (!hold) apply(result.update);
    trainer->follow(*replica);
    return result;
  }
  float shared(std::uint32_t i) const { return std::ldexp(static_cast<float>(replica->weights()[i]), -24); }
  float outside(std::uint32_t i) const { return i < rows * cols ? matrix[i] : float_of(offset[i - rows * cols]); }
  float drift(std::uint32_t i) const { return trainer->residual()[i]; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(alone_the_loop_trains_as_if_nothing_were_there) {
  Loop loop;
  std::vector<float> plain = loop.matrix;
  Prng prng = Prng::named(1, "alone");
  for (int s = 0; s < 50; ++s) {
    for (std::uint32_t i = 0; i < rows * cols; ++i) {
      const float change = static_cast<float>(prng.below(1000)) * 1e-5f - 0.005f;
      loop.matrix[i] += change;
      plain[i] += change;
    }
    const StepResult result = loop.step(1);
    BOOST_TEST(result.update.index.size() == 30u);  // 5 % of 607
    BOOST_TEST(result.samples == 8u);
  }
  for (std::uint32_t i = 0; i < rows * cols; ++i) BOOST_TEST(std::abs(loop.matrix[i] - plain[i]) < 1e-5f);
}

BOOST_AUTO_TEST_CASE(outside_weights_are_the_shared_ones_and_the_drift) {
  Loop loop;
  Prng prng = Prng::named(2, "drift");
  for (int s = 0; s < 40; ++s) {
    for (float& value : loop.matrix) value += static_cast<float>(prng.below(1000)) * 1e-5f - 0.004f;
    for (std::uint16_t& word : loop.offset) word = bf16_of(float_of(word) * 1.02f);
    compress::SparseUpdate other;  // of somebody else, meanwhile
    other.step = 1 << 14;
    other.index = {1, 77, rows * cols + 2};
    other.negative = {0, 1, 0};
    loop.apply(other);
    loop.trainer->follow(*loop.replica);
    loop.step(4, s % 5 == 4);
    loop.step(4);  // nothing new: what arrived last is in x now
    for (std::uint32_t i = 0; i < params; ++i) {
      const float wanted = loop.shared(i) + loop.drift(i);
      const float grain = i < rows * cols ? 1e-6f : std::abs(wanted) / 256;
      if (!(std::abs(loop.outside(i) - wanted) <= grain)) BOOST_FAIL(i);
    }
  }
}

BOOST_AUTO_TEST_CASE(of_n_peers_each_moves_the_weights_by_its_nth) {
  Loop loop(0.002);  // one entry
  loop.matrix[17] += 0.1f;
  const StepResult result = loop.step(4);
  BOOST_REQUIRE(result.update.index.size() == 1u);
  BOOST_TEST(result.update.index[0] == 17u);
  BOOST_TEST(std::abs(loop.shared(17) - 0.275f) < 1e-6f);
  BOOST_TEST(std::abs(loop.drift(17)) < 1e-6f);
  BOOST_TEST(std::abs(loop.matrix[17] - 0.275f) < 1e-6f);  // the peer falls back to where all are
}

BOOST_AUTO_TEST_CASE(several_steps_in_one_update_have_the_entries_of_several) {
  Loop loop(0.01);
  for (float& value : loop.matrix) value += 0.01f;
  BOOST_TEST(loop.step(1, false, 5).update.index.size() == 30u);
}

// Below the resolution of bfloat16: many small changes of others must not be lost, nor come back as ours.
BOOST_AUTO_TEST_CASE(small_changes_reach_bfloat16_in_the_end) {
  Loop loop(0.002);
  const std::uint32_t at = rows * cols + 3;
  for (int s = 0; s < 64; ++s) {
    compress::SparseUpdate other;
    other.step = 1 << 10;  // 2^-14 each; the grain at 0.5 is 2^-9
    other.index = {at};
    other.negative = {0};
    loop.apply(other);
    loop.trainer->follow(*loop.replica);
    loop.step(2);
    BOOST_TEST(loop.drift(at) == 0.0f);
  }
  loop.step(2);
  BOOST_TEST(loop.shared(at) == 0.5f + 64 * std::ldexp(1.0f, -14));
  BOOST_TEST(loop.outside(at) == loop.shared(at));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_brings_back_drift_and_local_memory) {
  Loop loop(0.002);
  for (float& value : loop.matrix) value += 0.01f;
  loop.matrix[3] += 0.1f;
  loop.own = {7, 8, 9};
  loop.step(2);
  const std::vector<float> drift(loop.trainer->residual().begin(), loop.trainer->residual().end());
  const Bytes local = loop.trainer->optimizer_state();

  Loop again(0.002);
  BOOST_REQUIRE(again.replica->restore(loop.replica->state()).ok());
  BOOST_REQUIRE(again.trainer->restore(drift, local).ok());
  again.trainer->follow(*again.replica);
  again.trainer->catch_up();
  BOOST_TEST((again.own == std::vector<std::uint8_t>{7, 8, 9}));
  for (std::uint32_t i = 0; i < rows * cols; ++i) BOOST_TEST(std::abs(again.matrix[i] - loop.matrix[i]) < 1e-6f);
  BOOST_TEST(!again.trainer->restore(drift, Bytes{1, 2}).ok());
  BOOST_TEST(!again.trainer->restore(std::span(drift).first(5), local).ok());

  again.trainer->load_shared();
  for (std::uint32_t i = 0; i < params; ++i) BOOST_TEST(again.outside(i) == again.shared(i));
}

BOOST_AUTO_TEST_CASE(a_change_that_is_no_number_is_undone) {
  Loop loop;
  loop.matrix[4] += 0.125f;
  loop.step(1, true);
  const std::vector<float> before = loop.matrix;
  for (const float bad : {NAN, INFINITY, 1e30f}) {
    loop.matrix[5] = bad;
    loop.matrix[6] += 1;
    const StepResult result = loop.step(1, true);
    BOOST_TEST(result.held);
    BOOST_TEST(result.undone);
    BOOST_TEST(result.samples == 0u);
    BOOST_TEST(loop.matrix == before, boost::test_tools::per_element());
  }
  BOOST_TEST(loop.trainer->take_warning().value_or("").find("undone") != std::string::npos);
  BOOST_TEST(!loop.trainer->take_warning());
  for (const float waits : loop.trainer->residual()) BOOST_REQUIRE(std::isfinite(waits));
  loop.matrix[5] += 0.5f;
  BOOST_TEST((loop.step(1).update.index == std::vector<std::uint32_t>{4, 5}));
}

BOOST_AUTO_TEST_CASE(a_loop_that_changes_nothing_but_to_no_numbers_fails) {
  Loop loop;
  StepResult result;
  int steps = 0;
  while (result.failure.empty() && steps < 100) {
    loop.matrix[5] = NAN;
    loop.trainer->told({1, 1, 0});
    result = loop.trainer->step({.density = 0.05});
    ++steps;
  }
  BOOST_TEST(steps == 10);
  BOOST_TEST(result.failure.find("diverged") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_loop_that_changes_nothing_is_told_so) {
  Loop loop;
  for (int step = 0; step < 19; ++step) loop.step(1, false, 10);
  BOOST_TEST(!loop.trainer->take_warning());
  loop.step(1, false, 10);
  BOOST_TEST(loop.trainer->take_warning().value_or("").find("copy") != std::string::npos);
}

// A loop whose changes grow learns again, and soon, what an own update has taken from x. That undoes nothing.
BOOST_AUTO_TEST_CASE(a_loop_that_learns_on_is_not_taken_for_one_that_undoes) {
  Loop loop(0.2);
  float change = 1e-8f;
  for (int step = 0; step < 40; ++step, change *= 1.5f) {
    for (float& weight : loop.matrix) weight += change;
    loop.step(4);
    BOOST_TEST(!loop.trainer->take_warning());
  }
}

BOOST_AUTO_TEST_CASE(weights_do_not_go_to_the_end_of_the_grid) {
  Loop loop(1);
  std::vector<std::uint32_t> left_out;
  for (int step = 0; step < 100; ++step) {
    loop.matrix[3] += (200 - loop.matrix[3]) / 10;
    left_out = loop.step(1).at_range_end;
    BOOST_TEST(loop.outside(3) > 0);
  }
  BOOST_TEST(loop.outside(3) > 199);
  BOOST_TEST(loop.shared(3) > 90);
  BOOST_TEST(loop.shared(3) <= 96);
  BOOST_TEST(left_out == std::vector<std::uint32_t>{3}, boost::test_tools::per_element());
  BOOST_TEST(!loop.replica->near_range_end());
}

BOOST_AUTO_TEST_CASE(a_flush_hands_the_drift_over) {
  Loop loop(0.002);
  Prng prng(5);
  for (int step = 0; step < 20; ++step) {
    for (float& weight : loop.matrix) weight += 0.01f * noise(prng);
    loop.step(1);
  }
  const auto drift = [&] {
    double sum = 0;
    for (const float waits : loop.trainer->residual()) sum += static_cast<double>(waits) * static_cast<double>(waits);
    return sum;
  };
  const double before = drift();
  for (const double density : {0.1, 0.2, 0.3, 0.4, 0.5}) {
    StepPlan plan{.density = density};
    plan.flush = true;
    StepResult result = loop.trainer->step(plan);
    BOOST_REQUIRE(!result.held);
    loop.apply(result.update);
    loop.trainer->follow(*loop.replica);
  }
  BOOST_TEST(drift() < 0.02 * before);
}

BOOST_AUTO_TEST_CASE(weights_beyond_the_grid_are_refused) {
  Loop loop;
  const std::vector<OutsideTensor> tensors = {{OutsideTensor::Type::f32, loop.matrix.data()},
                                              {OutsideTensor::Type::bf16, loop.offset.data()}};
  loop.matrix[5] = 1000;  // the grid ends at 128
  BOOST_TEST(largest_of(loop.layout, tensors) == 1000);
  const auto refused = on_grid(loop.layout, tensors, 24);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(refused.error().text.find("96") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
