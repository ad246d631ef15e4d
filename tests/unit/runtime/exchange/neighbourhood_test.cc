// Peers with models of their own: sums and shares by hand, copies held and lost, teachers, and a step of such a model.
#include "runtime/exchange/neighbourhood.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "runtime/replica/checkpoint.h"
#include "runtime/training/model_trainer.h"
#include "tests/unit/contains.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;
using test::contains;

namespace {

constexpr std::int32_t grid_one = 1 << 24;  // of the grid

gossip::StoredUpdate told_in(const RunForm& form, std::uint8_t by, std::uint64_t seq,
                             const compress::SparseUpdate& change, std::uint64_t period = 0) {
  gossip::StoredUpdate update;
  update.header.key = {test::stream(by), seq};
  update.header.origin = test::node(by);
  update.header.fingerprint = Fingerprinter(form.run).of_update(form.layout, change);
  update.header.period = period;
  update.header.samples = 16;
  update.payload = std::make_shared<const Bytes>(compress::encode(form.layout, change));
  return update;
}

// One peer over four weights, its own copy at zero, and the copies and updates of its neighbours.
struct Peer {
  ParamLayout layout = test::flat_layout(4);
  RunForm form{test::some_run(), layout, 24};
  Replica own{test::some_run(), layout, LargeVector<std::int32_t>(4, 0)};
  NeighbourRules rules;
  Neighbourhood near{form, own, rules};

  static compress::SparseUpdate change(std::vector<std::uint32_t> index, std::vector<std::uint8_t> negative,
                                       std::int32_t step) {
    compress::SparseUpdate update;
    update.index = std::move(index);
    update.negative = std::move(negative);
    update.step = step;
    return update;
  }
  gossip::StoredUpdate told(std::uint8_t by, std::uint64_t seq, const compress::SparseUpdate& change) const {
    return told_in(form, by, seq, change);
  }
  void tell(std::uint8_t by, std::uint64_t seq, const compress::SparseUpdate& change,
            std::uint64_t period = 0) {
    BOOST_REQUIRE(near.take_update(told_in(form, by, seq, change, period)).ok());
  }
  void link(std::uint8_t by) {
    near.hold_initial(test::node(by));
    near.set_linked(test::node(by), true, TimePoint{});
  }
  void move(std::uint64_t seq, const compress::SparseUpdate& change) {
    gossip::UpdateHeader header;
    header.key = {test::stream(9), seq};
    header.samples = 16;
    own.apply_own(header, change);
  }
  // In weights, for a share of 1.
  void require_pull(const std::vector<float>& want) {
    std::vector<float> pull(4);
    Serial alone;
    near.pull(1, pull, alone);
    BOOST_TEST(pull == want, boost::test_tools::per_element());
    near.check_invariants();
  }
};

// One neighbour, whose copy has 4 more at weight 3 and 2 less at weight 5.
struct Drawn {
  RunForm form;
  Neighbourhood near;
  Drawn(const ModelTrainer& trainer, Replica& own)
      : form{test::some_run(), trainer.layout(), 24}, near(form, own, NeighbourRules()) {
    near.hold_initial(test::node(1));
    near.set_linked(test::node(1), true, TimePoint{});
    BOOST_REQUIRE(near.take_update(told_in(form, 1, 1, Peer::change({3}, {0}, 4 * grid_one))).ok());
    BOOST_REQUIRE(near.take_update(told_in(form, 1, 2, Peer::change({5}, {1}, 2 * grid_one))).ok());
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(neighbourhood)

// c_0 = (3/4, 0, -3/4, 0), c_2 = (0, 0, 0, 2); ours moves by (1/2, 0, 0, 0): sum of c_j - c_i, two of them.
BOOST_AUTO_TEST_CASE(sums_of_a_peer_between_two_others) {
  Peer peer;
  peer.link(0);
  peer.link(2);
  peer.tell(0, 1, Peer::change({0, 2}, {0, 1}, 3 * grid_one / 4));
  peer.tell(2, 1, Peer::change({3}, {0}, 2 * grid_one));
  peer.require_pull({0.75f, 0, -0.75f, 2});
  peer.move(1, Peer::change({0}, {0}, grid_one / 2));
  peer.require_pull({-0.25f, 0, -0.75f, 2});
  BOOST_TEST(peer.near.size() == 2u);
}

// Algorithm 2 of the paper with w = 1 / (1 + 6): the target is four neighbours, the maximum six.
BOOST_AUTO_TEST_CASE(share_is_rate_times_weight) {
  Peer peer;
  BOOST_TEST(peer.near.share(0.04) == 0.1 / 7, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(consensus_rate(0.0004) == 0.01, boost::test_tools::tolerance(1e-12));
  NeighbourRules rules;
  rules.neighbours = 2;
  rules.consensus_rate = 0.75;
  Neighbourhood other(peer.form, peer.own, rules);
  BOOST_TEST(other.share(0.04) == 0.75 / 4, boost::test_tools::tolerance(1e-12));
  const gossip::LinkCounts links = links_of(rules);
  BOOST_TEST(links.target == 2u);
  BOOST_TEST(links.high == 3u);
  BOOST_TEST(links.low == 1u);
}

BOOST_AUTO_TEST_CASE(neighbours_teach_in_turn) {
  Peer peer;
  for (const std::uint8_t by : {0, 1, 2, 3}) peer.link(by);
  BOOST_TEST(peer.near.teachers(2, 0).empty());
  for (const std::uint8_t by : {0, 1, 2}) peer.tell(by, 1, Peer::change({by}, {0}, grid_one));
  // By the weight that each has moved.
  const auto asked = [&](std::size_t count, std::uint64_t turn) {
    std::vector<std::size_t> whom;
    for (const std::span<const std::int32_t> weights : peer.near.teachers(count, turn))
      for (std::size_t i = 0; i < weights.size(); ++i)
        if (weights[i] == grid_one) whom.push_back(i);
    return whom;
  };
  BOOST_TEST((asked(2, 0) == std::vector<std::size_t>{0, 1}));
  BOOST_TEST((asked(2, 1) == std::vector<std::size_t>{2, 0}));
  BOOST_TEST((asked(2, 2) == std::vector<std::size_t>{1, 2}));
  BOOST_TEST((asked(5, 0) == std::vector<std::size_t>{0, 1, 2}));
  BOOST_TEST(asked(0, 7).empty());
  peer.near.set_linked(test::node(1), false, TimePoint{});
  BOOST_TEST((asked(1, 1) == std::vector<std::size_t>{2}));
}

BOOST_AUTO_TEST_CASE(a_neighbour_counts_from_its_first_update_until_it_is_lost) {
  Peer peer;
  peer.move(1, Peer::change({1}, {0}, grid_one));
  peer.link(0);
  peer.require_pull({0, 0, 0, 0});  // the weights that everybody begins with are nobody's opinion
  BOOST_TEST(peer.near.size() == 0u);
  peer.tell(0, 1, Peer::change({0}, {0}, grid_one));
  peer.require_pull({1, -1, 0, 0});
  peer.near.set_linked(test::node(0), false, TimePoint{});
  peer.require_pull({0, 0, 0, 0});
  peer.near.set_linked(test::node(0), true, TimePoint{1s});
  peer.require_pull({1, -1, 0, 0});
  BOOST_TEST((peer.near.held(test::node(0), test::stream(0)) == 1u));
  BOOST_TEST(!peer.near.held(test::node(0), test::stream(7)).has_value());
}

BOOST_AUTO_TEST_CASE(a_neighbour_that_has_lost_all_begins_anew) {
  Peer peer;
  peer.link(0);
  peer.tell(0, 1, Peer::change({0}, {0}, grid_one));
  peer.near.set_linked(test::node(0), false, TimePoint{});
  peer.link(0);  // its greeting says that it has made no update
  peer.require_pull({0, 0, 0, 0});
  BOOST_TEST(peer.near.digest_of(test::node(0))->updates == 0u);
  peer.tell(0, 1, Peer::change({2}, {0}, grid_one));
  peer.require_pull({0, 0, 1, 0});
}

BOOST_AUTO_TEST_CASE(whole_copies_travel_and_replace) {
  Peer from, to;
  from.move(1, Peer::change({0, 3}, {0, 1}, grid_one));
  const auto copy = from.near.own_copy();
  BOOST_TEST(copy->size() <= from.near.copy_bytes_max());
  to.link(1);
  BOOST_REQUIRE(to.near.take_copy(test::node(1), *copy).ok());
  to.require_pull({1, 0, 0, -1});
  BOOST_TEST((to.near.digest_of(test::node(1)) == from.own.digest()));

  Bytes damaged = *copy;
  damaged[100] ^= 1;
  const auto refused = to.near.take_copy(test::node(1), damaged);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(contains(refused.error().text, "SHA-256"));
  const Bytes checkpoint = encode_checkpoint(from.form, from.own.state(), {test::node(1), {0, 0, 0, 0}, {}});
  BOOST_TEST(!to.near.take_copy(test::node(1), checkpoint).ok());
  ReplicaState lie = from.own.state();
  ++lie.weights[1];
  BOOST_TEST(!to.near.take_copy(test::node(1), encode_copy(from.form, lie)).ok());
  to.require_pull({1, 0, 0, -1});
}

BOOST_AUTO_TEST_CASE(an_update_that_is_not_what_it_says_moves_nothing) {
  Peer peer;
  peer.link(0);
  gossip::StoredUpdate update = peer.told(0, 1, Peer::change({0}, {0}, grid_one));
  ++update.header.fingerprint;
  BOOST_TEST(!peer.near.take_update(update).ok());
  update = peer.told(0, 1, Peer::change({0}, {0}, grid_one));
  update.payload = std::make_shared<const Bytes>(Bytes{1, 2, 3});
  BOOST_TEST(!peer.near.take_update(update).ok());
  peer.require_pull({0, 0, 0, 0});
  BOOST_TEST(peer.near.take_update(peer.told(0, 1, Peer::change({0}, {0}, grid_one))).ok());
  BOOST_TEST(peer.near.take_update(peer.told(0, 1, Peer::change({0}, {0}, grid_one))).ok());  // again: by a second link
  peer.require_pull({1, 0, 0, 0});
}

BOOST_AUTO_TEST_CASE(who_begins_goes_on_from_a_copy) {
  Peer peer;
  peer.link(0);
  peer.link(1);
  peer.tell(0, 1, Peer::change({0}, {0}, grid_one), 500);
  peer.tell(1, 1, Peer::change({1}, {0}, grid_one), 700);
  peer.near.begin_with(test::node(0));
  BOOST_TEST((peer.own.digest() == peer.near.digest_of(test::node(0))));
  BOOST_TEST(peer.own.samples() == 0u);
  peer.require_pull({-1, 1, 0, 0});
}

// 16 own samples; the neighbours have 400 and 184: 16 / 16 + 15 / 16 of 292.
BOOST_AUTO_TEST_CASE(the_mean_of_samples_is_that_of_all_in_sight) {
  Peer peer;
  peer.move(1, Peer::change({1}, {0}, grid_one));
  BOOST_TEST(peer.near.mean_samples() == 16);
  peer.link(0);
  peer.link(1);
  peer.tell(0, 1, Peer::change({0}, {0}, grid_one), 400);
  peer.tell(1, 1, Peer::change({0}, {0}, grid_one), 184);
  BOOST_TEST(peer.near.mean_samples() == 274.75);
  peer.near.set_linked(test::node(0), false, TimePoint{});
  BOOST_TEST(peer.near.mean_samples() == 1 + 172.5);
  peer.move(2, Peer::change({1}, {0}, grid_one));  // 16 more, and as many by the neighbour, it seems
  BOOST_TEST(peer.near.mean_samples() == 2 + 187.5);
  peer.tell(1, 2, Peer::change({0}, {0}, grid_one), 192);
  BOOST_TEST(peer.near.mean_samples() == 2 + 180);
}

BOOST_AUTO_TEST_CASE(of_lost_neighbours_the_newest_two_are_kept_for_a_while) {
  Peer peer;
  for (std::uint8_t by = 0; by < 4; ++by) {
    peer.link(by);
    peer.tell(by, 1, Peer::change({by}, {0}, grid_one));
  }
  for (std::uint8_t by = 0; by < 4; ++by) peer.near.set_linked(test::node(by), false, TimePoint{by * 1s});
  for (std::uint8_t by = 0; by < 4; ++by)
    BOOST_TEST(peer.near.held(test::node(by), test::stream(by)).has_value() == (by >= 2));
  peer.link(9);
  peer.near.set_linked(test::node(9), true, TimePoint{11min});
  BOOST_TEST(!peer.near.held(test::node(3), test::stream(3)).has_value());
  peer.require_pull({0, 0, 0, 0});
}

// At rate 0 a step is the pull of the neighbours alone; the model is its public copy plus the residual.
BOOST_AUTO_TEST_CASE(a_step_of_an_own_model_draws_it_to_the_neighbours) {
  RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  config.mode = "average";
  config.model.hidden = {8};
  const auto data = models::load_data(config.data).value();
  auto trainer = ModelTrainer::create(config, data, {0, 1}, 1).value();
  BOOST_TEST_REQUIRE(trainer->own_model() != nullptr);
  const std::uint32_t params = trainer->layout().params();
  Replica own(test::some_run(), trainer->layout(), trainer->initial_weights());
  const std::vector<float> before = models::to_floats(own.weights(), 24);

  const Drawn drawn(*trainer, own);
  trainer->follow(own);
  trainer->own_model()->pull_towards(drawn.near, 0.125);
  StepPlan plan;
  plan.density = 1.0 / params;  // one entry
  plan.period = 42;
  StepResult step = trainer->step(plan);
  BOOST_TEST(step.failure.empty());
  BOOST_TEST(!step.held);
  BOOST_TEST(step.period == 42u);
  BOOST_REQUIRE(step.update.index.size() == 1u);
  BOOST_TEST(step.update.index[0] == 3u);
  BOOST_TEST(step.update.step == grid_one / 2);
  gossip::UpdateHeader header;
  header.key = {test::stream(1), 1};
  own.apply_own(header, step.update);
  trainer->follow(own);
  std::vector<float> want = before;
  want[3] += 0.5f;
  want[5] -= 0.25f;  // not told yet, but its own
  const std::span<const float> model = trainer->view().values;
  for (std::uint32_t i = 0; i < params; ++i)
    BOOST_TEST(model[i] == want[i], boost::test_tools::tolerance(1e-6f));

  const auto checkpoint = Checkpoint{
      own.state(), {test::node(1), {trainer->residual().begin(), trainer->residual().end()}, {}, true}};
  const RunForm form{test::some_run(), trainer->layout(), 24};
  const Bytes bytes = encode_checkpoint(form, checkpoint.replica, checkpoint.local);
  const auto restored = decode_checkpoint(form, bytes).value();
  BOOST_TEST(restored.local.own_model);
  BOOST_TEST(model_of(form, restored) == std::vector<float>(model.begin(), model.end()),
             boost::test_tools::per_element());
}

// A linear model of ten classes at zero predicts 1/10 for each. A teacher with a bias of ln 9 on the first predicts 1/2
// and 1/18, one at zero 1/10; the means are 3/10 and 7/90. So the gradient of a bias gains agreement * (1/10 - mean)
// for every batch (Anil et al. 2018, with soft_targets.h), all is divided by 1 + agreement, and the residual changes by
// minus the rate times that.
BOOST_AUTO_TEST_CASE(a_step_learns_from_what_teachers_predict) {
  RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  config.mode = "codistill";
  config.model.hidden = {};
  config.optimizer.kind = "sgd";
  config.neighbour_rules.agreement = 0.5;
  const auto data = models::load_data(config.data).value();
  const auto what_waits = [&](std::size_t teachers) {
    auto trainer = ModelTrainer::create(config, data, {0, 1}, 1).value();
    const LargeVector<std::int32_t> zero(trainer->layout().params(), 0);
    LargeVector<std::int32_t> sure = zero;
    sure[sure.size() - 10] = static_cast<std::int32_t>(std::lround(std::log(9.0) * grid_one));
    Replica own(test::some_run(), trainer->layout(), zero);
    trainer->follow(own);
    const std::span<const std::int32_t> both[] = {sure, zero};
    trainer->own_model()->learn_from(std::span(both).first(teachers));
    StepPlan plan;
    plan.rate = 0.25;
    plan.hold = true;
    BOOST_TEST(trainer->step(plan).held);
    return std::vector<float>(trainer->residual().end() - 10, trainer->residual().end());
  };
  const std::vector<float> alone = what_waits(0), taught = what_waits(2);
  for (std::size_t c = 0; c < 10; ++c)
    BOOST_TEST(1.5f * taught[c] - alone[c] == (c == 0 ? 0.25f * 0.5f * 0.2f : -0.25f * 0.5f * 2 / 90),
               boost::test_tools::tolerance(1e-4f));
}

// |x - c|^2 is 0.25 + 0.0625 after the pull: above the bound in one case, below in the other (Kamp et al. 2018).
BOOST_AUTO_TEST_CASE(a_peer_speaks_when_it_has_drifted) {
  RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  config.mode = "average";
  config.model.hidden = {8};
  const auto data = models::load_data(config.data).value();
  for (const double bound : {0.3, 0.313}) {
    auto trainer = ModelTrainer::create(config, data, {0, 1}, 1).value();
    Replica own(test::some_run(), trainer->layout(), trainer->initial_weights());
    const Drawn drawn(*trainer, own);
    trainer->follow(own);
    trainer->own_model()->pull_towards(drawn.near, 0.125);
    StepPlan plan;
    plan.density = 0.01;
    plan.drift_bound = bound;
    const StepResult step = trainer->step(plan);
    BOOST_TEST(step.held == (bound > 0.3125));
    BOOST_TEST(step.payload.empty() == step.held);
  }
}

BOOST_AUTO_TEST_SUITE_END()
