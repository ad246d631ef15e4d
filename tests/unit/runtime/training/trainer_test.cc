#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <set>

#include "runtime/training/model_trainer.h"

using namespace rumor;

namespace {

constexpr std::uint32_t rows = 40;

// Row r has a one in column r and zeros elsewhere, so that the first layer's gradient tells which row was drawn.
std::shared_ptr<const models::DataSet> one_hot_rows() {
  models::DataSet data;
  data.name = "one-hot";
  data.inputs = rows;
  data.classes = 2;
  data.train.rows = rows;
  data.train.pixels.assign(rows * rows, 0);
  for (std::uint32_t r = 0; r < rows; ++r) {
    data.train.pixels[r * rows + r] = 1;
    data.train.label.push_back(static_cast<std::uint8_t>(r % 2));
  }
  data.mean = 0;
  data.scale = 1;
  return std::make_shared<const models::DataSet>(std::move(data));
}

RunConfig config_for_rows() {
  RunConfig config;
  config.model.hidden = {16};
  config.batch = 1;
  config.density = 0.2;
  return config;
}

// The columns of the first layer that an epoch's updates move: the rows of the trainer's shard.
std::set<std::uint32_t> rows_seen(ModelTrainer& trainer, std::uint32_t steps) {
  trainer.refresh(trainer.initial_weights());
  const std::uint32_t first_layer = trainer.layout().tensors().front().size;
  std::set<std::uint32_t> seen;
  for (std::uint32_t s = 0; s < steps; ++s) {
    const StepResult result = trainer.step({0.1, 0.2, s + 1});
    BOOST_REQUIRE_MESSAGE(result.failure.empty(), result.failure);
    for (std::uint32_t index : result.update.index)
      if (index < first_layer) seen.insert(index % rows);
  }
  return seen;
}

}  // namespace

// Peers draw in orders of their own; their shards must be parts of one split all the same.
BOOST_AUTO_TEST_CASE(shards_of_different_peers_do_not_overlap) {
  const auto data = one_hot_rows();
  std::set<std::uint32_t> all;
  std::size_t sum = 0;
  for (std::uint32_t index = 0; index < 4; ++index) {
    auto trainer = ModelTrainer::create(config_for_rows(), data, {index, 4}, 1000 + index);
    BOOST_REQUIRE(trainer.ok());
    const auto seen = rows_seen(**trainer, rows / 4);
    BOOST_TEST(!seen.empty());
    BOOST_TEST(seen.size() <= rows / 4);
    sum += seen.size();
    all.insert(seen.begin(), seen.end());
  }
  BOOST_TEST(all.size() == sum);
  BOOST_TEST(all.size() > rows / 2);
}

BOOST_AUTO_TEST_CASE(a_payload_decodes_to_the_update_beside_it) {
  auto trainer = ModelTrainer::create(config_for_rows(), one_hot_rows(), {0, 1}, 7).value();
  trainer->refresh(trainer->initial_weights());
  const StepResult result = trainer->step({0.1, 0.2, 3});
  const auto decoded = compress::decode(trainer->layout(), result.payload);
  BOOST_REQUIRE(decoded.ok());
  BOOST_TEST((*decoded == result.update));
  BOOST_TEST(result.period == 3u);
  BOOST_TEST(result.samples == 1u);
}

BOOST_AUTO_TEST_CASE(a_step_that_is_held_back_leaves_its_change_in_the_residual) {
  auto trainer = ModelTrainer::create(config_for_rows(), one_hot_rows(), {0, 1}, 7).value();
  trainer->refresh(trainer->initial_weights());
  const StepResult held = trainer->step({.rate = 0.1, .density = 0.2, .period = 1, .hold = true});
  BOOST_TEST(held.held);
  BOOST_TEST(held.payload.empty());
  BOOST_TEST(held.update.index.empty());
  BOOST_TEST(held.samples == 1u);
  const std::vector<float> waiting(trainer->residual().begin(), trainer->residual().end());
  BOOST_TEST(std::any_of(waiting.begin(), waiting.end(), [](float x) { return x != 0; }));
  // At rate 0 nothing is added: what is sent now is of the step before.
  const StepResult sent = trainer->step({.rate = 0, .density = 0.2, .period = 2});
  BOOST_TEST(!sent.held);
  BOOST_TEST_REQUIRE(!sent.update.index.empty());
  const std::span<const float> left = trainer->residual();
  const float step = std::ldexp(static_cast<float>(sent.update.step), -24);
  std::vector<float> sum(left.begin(), left.end());
  for (std::size_t e = 0; e < sent.update.index.size(); ++e)
    sum[sent.update.index[e]] += sent.update.negative[e] != 0 ? -step : step;
  for (std::size_t i = 0; i < sum.size(); ++i) BOOST_TEST(std::abs(sum[i] - waiting[i]) <= 1e-6f);
}

// Two trainers of the same rows, one with a residual of an earlier turn.
BOOST_AUTO_TEST_CASE(a_step_that_drops_the_residual_is_as_one_without) {
  const auto made = [](bool has_residual, bool drops) {
    auto trainer = ModelTrainer::create(config_for_rows(), one_hot_rows(), {0, 1}, 7).value();
    trainer->refresh(trainer->initial_weights());
    const std::vector<float> residual(trainer->layout().params(), has_residual ? 0.5f : 0.0f);
    BOOST_REQUIRE(trainer->restore(residual, trainer->optimizer_state()).ok());
    return trainer->step({.rate = 0.1, .density = 0.2, .period = 1, .drop_residual = drops}).payload;
  };
  BOOST_TEST(made(true, true) == made(false, false));
  BOOST_TEST(made(true, false) != made(false, false));
}

BOOST_AUTO_TEST_CASE(what_waits_fades_again_after_a_flush) {
  RunConfig config = config_for_rows();
  config.residual_decay = 0.5;
  config.mode = "broadcast";
  auto trainer = ModelTrainer::create(config, one_hot_rows(), {0, 1}, 7).value();
  trainer->refresh(trainer->initial_weights());
  const auto most = [&](const StepPlan& plan) {
    BOOST_REQUIRE(trainer->step(plan).failure.empty());
    return *std::max_element(trainer->residual().begin(), trainer->residual().end());
  };
  // Updates send of the lower half, where there is more; the upper half waits, and fades.
  std::vector<float> residual(trainer->layout().params(), 0.25f);
  for (std::size_t i = 0; i < residual.size() / 2; ++i) residual[i] = -0.5f;
  BOOST_REQUIRE(trainer->restore(residual, trainer->optimizer_state()).ok());
  BOOST_TEST(most({.rate = 0, .density = 0.2, .period = 1, .flush = true}) == 0.25f);
  BOOST_TEST(most({.rate = 0, .density = 0.2, .period = 2}) < 0.24f);
}

BOOST_AUTO_TEST_CASE(a_budget_in_bytes_bounds_the_payload) {
  RunConfig config = config_for_rows();
  config.bytes_per_update = 100;
  config.model.hidden = {64};
  auto trainer = ModelTrainer::create(config, one_hot_rows(), {0, 1}, 7).value();
  trainer->refresh(trainer->initial_weights());
  std::size_t sum = 0;
  for (std::uint32_t s = 0; s < 20; ++s) {
    const StepResult result = trainer->step({.rate = 0.1, .density = 0, .period = s + 1, .seconds = 0.01});
    BOOST_REQUIRE_MESSAGE(result.failure.empty(), result.failure);
    BOOST_TEST(result.payload.size() <= 100u);
    BOOST_TEST((compress::decode(trainer->layout(), result.payload).value() == result.update));
    sum += result.payload.size();
  }
  BOOST_TEST(sum >= 20u * 85);
}

// The residual after two steps, when other peers made these changes in between.
std::vector<float> residual_with(const std::string& optimizer, const std::vector<compress::SparseUpdate>& others) {
  RunConfig config = config_for_rows();
  config.optimizer.kind = optimizer;
  auto trainer = ModelTrainer::create(config, one_hot_rows(), {0, 1}, 7).value();
  BOOST_TEST(trainer->wants_changes_of_others() == (optimizer == "adaptive_revision"));
  trainer->refresh(trainer->initial_weights());
  BOOST_REQUIRE(trainer->step({.rate = 0.1, .density = 0.2, .period = 1, .hold = true}).failure.empty());
  StepPlan plan{.rate = 0.1, .density = 0.2, .period = 2, .hold = true};
  plan.others = others;
  BOOST_REQUIRE(trainer->step(plan).failure.empty());
  return {trainer->residual().begin(), trainer->residual().end()};
}

BOOST_AUTO_TEST_CASE(what_others_changed_revises_the_places_they_touched) {
  const std::uint32_t params = rows * 16 + 16 + 16 * 2 + 2;
  const std::vector<std::uint32_t> biases{params - 2, params - 1};  // of the outputs: their gradients are opposite
  const compress::SparseUpdate up{1 << 20, biases, {0, 0}, {}}, down{1 << 20, biases, {1, 1}, {}};
  const std::vector<float> alone = residual_with("adaptive_revision", {});
  const std::vector<float> among = residual_with("adaptive_revision", {up, up});
  BOOST_REQUIRE(alone.size() == params);
  for (std::uint32_t i = 0; i < params - 2; ++i) BOOST_TEST(alone[i] == among[i]);
  BOOST_TEST((alone[params - 2] != among[params - 2] || alone[params - 1] != among[params - 1]));
  BOOST_TEST((residual_with("adaptive_revision", {up, down}) == alone));
  BOOST_TEST((residual_with("sgd", {up, up}) == residual_with("sgd", {})));
}

BOOST_AUTO_TEST_CASE(a_shard_that_does_not_exist_is_refused) {
  const auto refused = ModelTrainer::create(config_for_rows(), one_hot_rows(), {4, 4}, 1);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == Errc::usage));
  BOOST_TEST(!ModelTrainer::create(config_for_rows(), one_hot_rows(), {0, rows + 1}, 1).ok());
}
