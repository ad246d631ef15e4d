// A node alone, driven by hand: steps and evaluations take as long as the test says.
#include "runtime/node/node.h"

#include <boost/test/unit_test.hpp>

#include <set>

#include "runtime/base/grid_range.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/replica/checkpoint.h"
#include "runtime/sim/world/tag_keys.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(node)

namespace {

struct Driver {
  std::unique_ptr<Node> node;
  NodeOutbox out;
  TimePoint now{Duration{1s}};
  Duration step_time{1s}, evaluation_time{};
  std::vector<TimePoint> evaluations;  // when each began

  std::vector<std::pair<TimePoint, std::size_t>> checkpoints;  // when, and how many bytes

  explicit Driver(std::vector<std::uint32_t> hidden = {64}, Duration checkpoint_every = {},
                  const std::vector<std::string>& overrides = {}, models::Shard shard = {}, bool observe = false) {
    RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
    config.samples = 1'000'000;
    config.model.hidden = std::move(hidden);
    for (const std::string& key : overrides) BOOST_REQUIRE(override_run_config(config, key).ok());
    NodeOptions options;
    options.node.bytes.fill(9);
    options.checkpoint_every = checkpoint_every;
    options.shard = shard;
    options.observe = observe;
    options.stream = gossip::stream_of(options.node, 1);
    options.keys = std::make_shared<sim::TagKeys>(options.node);
    node = std::move(Node::create(config, models::load_data(config.data, 0).value(), options)).value();
    node->start(now, out);
  }

  // One effect that takes time, or the next deadline.
  void go_on() {
    for (NodeEffect& effect : std::exchange(out, {})) {
      if (auto* save = std::get_if<SaveCheckpoint>(&effect)) checkpoints.emplace_back(now, save->bytes.size());
      if (auto* step = std::get_if<StartStep>(&effect)) {
        StepResult result = node->trainer().step(step->plan);
        now += step_time;
        return node->on_step_done(std::move(result), now, out);
      }
      if (auto* evaluation = std::get_if<StartEvaluation>(&effect)) {
        evaluations.push_back(now);
        const models::Evaluation result = node->trainer().evaluate(evaluation->weights, 10);
        now += evaluation_time;
        return node->on_evaluated(result, now, out);
      }
    }
    now = std::max(now, node->next_deadline());
    node->on_time(now, out);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(evaluations_take_a_tenth_of_the_time_at_most) {
  for (const Duration evaluation_time : {Duration{1ms}, Duration{3s}}) {
    Driver driver;
    driver.evaluation_time = evaluation_time;
    while (driver.evaluations.size() < 5) driver.go_on();
    for (std::size_t i = 1; i < 5; ++i) {
      const Duration apart = driver.evaluations[i] - driver.evaluations[i - 1];
      BOOST_TEST((apart >= std::max<Duration>(2s, 10 * evaluation_time)));
      BOOST_TEST((apart <= std::max<Duration>(2s, 10 * evaluation_time) + 2 * driver.step_time));
    }
  }
}

BOOST_AUTO_TEST_CASE(an_observer_takes_no_step_and_evaluates_the_same_weights_once) {
  Driver driver({64}, Duration{500ms}, {}, {}, true);
  while (driver.now < TimePoint{Duration{30s}}) driver.go_on();
  const NodeStatus status = driver.node->status(driver.now);
  BOOST_TEST(status.phase == "training");
  BOOST_TEST(status.training.steps == 0u);
  BOOST_TEST(status.live_peers == 0u);
  BOOST_TEST(driver.evaluations.size() == 1u);
  BOOST_TEST(status.training.loss.has_value());
  BOOST_TEST(driver.checkpoints.size() > 50u);
}

BOOST_AUTO_TEST_CASE(own_updates_count_as_contributions) {
  Driver driver;
  while (driver.node->status(driver.now).training.steps < 20) driver.go_on();
  const NodeStatus status = driver.node->status(driver.now);
  BOOST_TEST_REQUIRE(status.contributions.nodes.size() == 1u);
  const Contribution& own = status.contributions.nodes[0];
  BOOST_TEST(own.updates == status.updates);
  BOOST_TEST(own.samples == status.samples);
  BOOST_TEST(own.share().value() == 1.0);
}

BOOST_AUTO_TEST_CASE(sgd_and_broadcast_hold_four_words_a_parameter) {
  Driver driver;
  while (driver.node->status(driver.now).training.steps < 20) driver.go_on();
  const NodeStatus status = driver.node->status(driver.now);
  const MemoryUse& use = status.memory;
  for (const std::uint64_t word : {use.weights, use.view, use.gradient, use.residual})
    BOOST_TEST(word == 4 * status.params);
  BOOST_TEST(use.optimizer == 0u);
  BOOST_TEST(use.of_parameters() == 16 * status.params);
  BOOST_TEST(status.bytes_per_parameter() == 16.0);
  BOOST_TEST(use.in_flight == 0u);  // nobody is there to answer
  BOOST_TEST(use.activations >= 16u * (64 + 2 * 64 + 2 * 10) * sizeof(float));
  BOOST_TEST(use.log > 20u * 48);
  BOOST_TEST((use.entries > 0 && use.entries < 200'000));  // room for a tile of candidates, whatever the model
}

BOOST_AUTO_TEST_CASE(checkpoints_come_as_often_as_asked_unless_they_are_large) {
  for (const std::vector<std::uint32_t>& hidden : {std::vector<std::uint32_t>{64}, {1500, 1500}}) {
    Driver driver(hidden, Duration{500ms});
    driver.step_time = Duration{100ms};
    while (driver.checkpoints.size() < 4) driver.go_on();
    for (std::size_t i = 1; i < 4; ++i) {
      const auto [before, bytes] = driver.checkpoints[i - 1];
      const Duration least =
          std::max<Duration>(500ms, from_seconds(static_cast<double>(bytes) / limits::checkpoint_bytes_per_second));
      BOOST_TEST((bytes > 10u << 20) == (hidden.size() > 1));
      BOOST_TEST((driver.checkpoints[i].first - before >= least));
      BOOST_TEST((driver.checkpoints[i].first - before <= least + 2 * driver.step_time));
    }
  }
}

// No record has what a peer learned since its last update, so a run of portable steps goes on without that.
BOOST_AUTO_TEST_CASE(a_checkpoint_between_two_updates_begins_a_new_trainer_where_all_steps_must_be_portable) {
  for (const bool portable : {false, true}) {
    const std::vector<std::string> keys = {"audit.record=true",
                                           str("audit.arithmetic='", portable ? "portable" : "any", "'")};
    Driver driver({64}, {}, keys), again({64}, {}, keys);
    while (driver.node->figures().own_updates() < 3) driver.go_on();
    LocalState local;
    local.node = driver.node->self();
    const auto residual = driver.node->trainer().residual();
    local.residual.assign(residual.begin(), residual.end());
    local.optimizer = driver.node->trainer().optimizer_state();
    BOOST_REQUIRE(std::any_of(residual.begin(), residual.end(), [](float value) { return value != 0; }));
    const Bytes checkpoint = encode_checkpoint(driver.node->form(), driver.node->replica().state(), local);
    BOOST_REQUIRE(again.node->restore(checkpoint).ok());
    const auto restored = again.node->trainer().residual();
    BOOST_TEST(std::all_of(restored.begin(), restored.end(), [](float value) { return value == 0; }) == portable);
    BOOST_TEST((again.node->replica().digest() == driver.node->replica().digest()));
  }
}

BOOST_AUTO_TEST_CASE(a_peer_whose_trainer_is_not_portable_is_refused) {
  RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  for (const char* const key : {"audit.record=true", "audit.arithmetic='portable'", "compress.bytes_per_update=500"})
    BOOST_REQUIRE(override_run_config(config, key).ok());
  const auto data = models::load_data(config.data, 0).value();
  const auto refused = Node::create(config, data, {});
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == Errc::usage));
  BOOST_TEST(refused.error().text.find("audit.arithmetic") != std::string::npos);
  NodeOptions follower;
  follower.observe = true;
  follower.keys = std::make_shared<sim::TagKeys>(follower.node);
  BOOST_TEST(Node::create(config, data, std::move(follower)).ok());
}

BOOST_AUTO_TEST_CASE(a_peer_whose_training_fails_keeps_its_last_checkpoint) {
  for (const char* rate : {"0.1", "1000"}) {
    Driver driver({64}, Duration{50s}, {str("optimizer.rate=", rate)});
    while (driver.now < TimePoint{Duration{70s}} && driver.node->next_deadline() != never) driver.go_on();
    const bool failed = driver.node->status(driver.now).phase == "ended";
    BOOST_TEST(failed == (rate[0] == '1'));
    const std::size_t before = driver.checkpoints.size();
    if (!failed) driver.node->stop(driver.now, driver.out);
    while (driver.node->status(driver.now).phase != "ended") driver.go_on();
    driver.go_on();
    BOOST_TEST(driver.checkpoints.size() == before + !failed);
  }
}

BOOST_AUTO_TEST_CASE(weights_near_the_end_of_the_grid_wait) {
  Driver driver({64}, {}, {"compress.grid_bits=30", "optimizer.rate=2"});  // from -2 to 2
  while (driver.node->status(driver.now).training.entries_at_range_end == 0) {
    driver.go_on();
    BOOST_REQUIRE(driver.node->status(driver.now).training.steps < 2000);
  }
  for (int step = 0; step < 50; ++step) driver.go_on();
  std::int64_t largest = 0;
  for (const std::int32_t weight : driver.node->replica().weights())
    largest = std::max(largest, std::abs(std::int64_t{weight}));
  BOOST_TEST(largest <= range_guarded);
  BOOST_TEST(largest > range_guarded / 2);
}

// Five updates of the residual, without samples, and then the run is over.
BOOST_AUTO_TEST_CASE(a_flush_sends_the_residual_before_the_end) {
  for (const auto& [bits, flushes] : {std::pair{"0", 0u}, std::pair{"2", 5u}, std::pair{"6", 17u}}) {
    Driver driver({64}, {}, {str("exchange.flush_bits=", bits)});
    while (driver.node->status(driver.now).training.steps < 50) driver.go_on();
    const auto waiting = [&] {
      double sum = 0;
      for (const float one : driver.node->trainer().residual()) sum += static_cast<double>(one) * one;
      return sum;
    };
    const double before = waiting();
    const std::uint64_t samples = driver.node->status(driver.now).samples;
    driver.node->finish(driver.now, driver.out);
    std::set<std::string> told;
    while (driver.node->status(driver.now).phase == "training" || driver.node->status(driver.now).phase == "flushing") {
      driver.go_on();
      const NodeStatus now = driver.node->status(driver.now);
      if (now.phase == "flushing") told.insert(now.waiting_for);
    }
    const std::string last = str("sends what it has learned and not sent yet: ", flushes, " of ", flushes, " updates");
    BOOST_TEST(told.contains(last) == (flushes > 0));
    const NodeStatus status = driver.node->status(driver.now);
    BOOST_TEST(status.training.steps - 50 >= flushes);
    BOOST_TEST(status.training.steps - 50 <= flushes + 1);  // and the one that was under way
    BOOST_TEST(status.samples <= samples + 16);
    if (flushes == 0) BOOST_TEST(waiting() > 0.5 * before);
    if (flushes == 17) BOOST_TEST(waiting() < 0.01 * before);
  }
}

// A large update goes onto the view while the trainer waits, a small one together with those that follow.
BOOST_AUTO_TEST_CASE(much_reaches_the_view_while_the_trainer_waits) {
  for (const std::vector<std::uint32_t>& hidden : {std::vector<std::uint32_t>{64}, {1300, 1300}}) {
    Driver driver(hidden, {}, {"exchange.period_ms=60000", "compress.density=0.2"});
    while (driver.node->status(driver.now).training.own_updates() == 0) driver.go_on();
    const std::uint64_t entries = driver.node->status(driver.now).params / 5;
    BOOST_TEST_REQUIRE((entries > 1 << 18) == (hidden.size() > 1));
    BOOST_TEST((driver.node->replica().recent_entries() == 0) == (hidden.size() > 1));
  }
}

// The early phase is for the first shards. A peer of another shard begins when none of them has for ten seconds.
BOOST_AUTO_TEST_CASE(a_peer_leaves_the_early_phase_to_others_for_ten_seconds) {
  const std::vector<std::string> early = {"exchange.early_share=0.5", "exchange.early_peers=1"};
  for (const std::uint32_t index : {0u, 1u}) {
    Driver driver({64}, {}, early, {index, 2});
    while (driver.evaluations.empty()) driver.go_on();  // of the first weights
    const bool waits = index > 0;
    const std::string waiting = driver.node->status(driver.now).waiting_for;
    BOOST_TEST((waiting.find("the early phase to end") != std::string::npos) == waits);
    while (driver.node->status(driver.now).training.steps == 0) driver.go_on();
    BOOST_TEST((driver.now >= TimePoint{10s}) == waits);
    BOOST_TEST(driver.node->status(driver.now).training.seconds_waited == (waits ? 10.0 : 0.0),
               boost::test_tools::tolerance(0.01));
  }
}

BOOST_AUTO_TEST_SUITE_END()
