// Cheats that know about audits: those that wait for one, that work together, or that accuse others.
#include <array>
#include <deque>

#include "tests/sim/cheating_swarm.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(adversaries)

namespace {

using test::audited_run, test::CheatingSwarm, test::CheatKind;

StepResult ten_times_too_far(ModelTrainer& trainer, const StepPlan& plan) {
  StepResult result = trainer.step(plan);
  result.update.step *= 10;
  test::encode_again(trainer, result);
  return result;
}

// Node 2 never answers who asks for its state.
bool gives_no_state(sim::HostId from, sim::HostId, const gossip::OutFrame& frame) {
  return from == 2 && frame.head[0] == static_cast<std::uint8_t>(gossip::FrameType::state_data);
}

// Updates of honest peers that are in the weights of node 0 at the end.
std::uint64_t honest_updates(const CheatingSwarm& swarm) {
  std::uint64_t updates = 0;
  for (std::size_t i = 0; i < CheatingSwarm::nodes; ++i)
    if (!swarm.cheats_at(i)) updates += swarm.cluster->node(i)->figures().own_updates();
  return updates;
}

}  // namespace

// For comparison with what cheats leave behind.
BOOST_AUTO_TEST_CASE(nobody_cheats) {
  CheatingSwarm swarm(audited_run(120'000), test::honest_step);
  test::finish(*swarm.cluster, 900s);
  BOOST_TEST_MESSAGE("nobody cheats: loss " << swarm.loss() << " in the end");
  BOOST_TEST(swarm.revocations().empty());
}

BOOST_AUTO_TEST_CASE(updates_that_move_ten_times_too_far) {
  CheatingSwarm swarm(audited_run(120'000), test::after_a_segment(ten_times_too_far));
  test::check_that_it_is_put_out("scaled by 10", swarm);
}

// It learns from one mini-batch and says afterwards that it has learned from others.
BOOST_AUTO_TEST_CASE(the_same_update_again_and_again) {
  const auto lazy = [last = compress::SparseUpdate()](ModelTrainer& trainer, StepPlan plan) mutable {
    StepResult result = trainer.step(plan);
    if (last.index.empty()) last = result.update;
    result.update = last;
    test::encode_again(trainer, result);
    return result;
  };
  CheatingSwarm swarm(audited_run(120'000), test::after_a_segment(lazy));
  test::check_that_it_is_put_out("the same mini-batch again", swarm);
}

// It is told of each audit as soon as that has ended, which no real cheat is. Coins have no memory, so this is worth
// nothing to it.
BOOST_AUTO_TEST_CASE(honest_until_it_has_been_audited) {
  CheatingSwarm* self = nullptr;
  const auto waits = [&self](ModelTrainer& trainer, const StepPlan& plan) {
    return self->found_of(self->cheat()).agreed == 0 ? trainer.step(plan) : ten_times_too_far(trainer, plan);
  };
  CheatingSwarm swarm(audited_run(120'000), waits);
  self = &swarm;
  test::check_that_it_is_put_out("honest until audited", swarm);
  BOOST_TEST(swarm.found_of(swarm.cheat()).agreed > 0u);
}

// Half of the peers. They agree with each other, so only the audits of the other half count.
BOOST_AUTO_TEST_CASE(two_cheats_that_audit_each_other) {
  CheatingSwarm swarm(audited_run(160'000), test::after_a_segment(ten_times_too_far), {.nodes = {1, 2}});
  test::check_that_it_is_put_out("two of four together", swarm);
}

// The last updates of all are audited when nobody trains any more. Several peers find several false ones, and follow
// each other's proofs after their own.
BOOST_AUTO_TEST_CASE(a_cheat_at_the_very_end) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    CheatingSwarm swarm(audited_run(60'000), test::after_a_segment(ten_times_too_far, 930), {}, seed);
    test::finish(*swarm.cluster, 900s);
    const double before = swarm.loss();
    swarm.cluster->run_until(swarm.cluster->now() + 60s);
    const std::set<gossip::Revocation> revocations = swarm.revocations();
    BOOST_REQUIRE(revocations.size() == 1u);
    BOOST_TEST((revocations.begin()->node == swarm.cheat()));
    const std::uint64_t made = swarm.cluster->node(2)->figures().own_updates();
    const std::uint64_t left = test::updates_of(*swarm.cluster->node(0), swarm.cheat());
    BOOST_TEST_MESSAGE("at the very end: made " << made << ", of which " << left << " are left; loss " << before
                                                << " before, " << swarm.loss() << " after");
    BOOST_TEST((left >= 929u && left < made));
  }
}

// A run may take only steps that anybody can make again.
BOOST_AUTO_TEST_CASE(steps_that_nobody_could_make_again) {
  RunConfig config = audited_run(120'000);
  CheatingSwarm tolerant(config, test::honest_step, {.data_for = 0});
  test::finish(*tolerant.cluster, 900s);
  BOOST_TEST(tolerant.revocations().empty());
  BOOST_TEST(tolerant.found_of(tolerant.cheat()).cannot_tell > 0u);
  config.arithmetic = "portable";
  CheatingSwarm swarm(config, test::honest_step, {.data_for = 1});  // for its own check, not for its records
  test::check_that_it_is_put_out("says that nobody can make its steps again", swarm);
  BOOST_TEST(test::updates_of(*swarm.cluster->node(0), swarm.cheat()) == 0u);
}

// The last segment of each peer is made again before its auditors end with the run, so no luck is needed.
BOOST_AUTO_TEST_CASE(a_cheat_in_the_last_hundredth_of_a_run_that_all_leave) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CheatingSwarm* self = nullptr;
    const auto at_the_end = [&self](ModelTrainer& trainer, const StepPlan& plan) {
      const bool late = self->cluster->node(0)->replica().samples() * 100 > self->config.samples * 99;
      return late ? ten_times_too_far(trainer, plan) : trainer.step(plan);
    };
    CheatingSwarm swarm(audited_run(30'000), at_the_end, {.end_with_the_run = true}, seed);
    self = &swarm;
    test::finish(*swarm.cluster, 900s);
    swarm.cluster->run_until(swarm.cluster->now() + 100s);
    BOOST_TEST(swarm.found_of(swarm.cheat()).differ > 0u, "seed " << seed);
    bool proven = false;
    for (const std::size_t i : {0, 1, 3}) {
      BOOST_TEST((swarm.cluster->node(i)->status({}).phase == "ended"));
      for (const gossip::Revocation& one : swarm.cluster->node(i)->replica().revocations()) {
        BOOST_TEST((one.node == swarm.cheat()));
        proven = true;
      }
    }
    BOOST_TEST(proven, "seed " << seed);
  }
}

// The state of a segment may be on its way when the run ends, and the segment be a last one, too.
BOOST_AUTO_TEST_CASE(peers_that_audit_much_end_with_their_run) {
  for (const std::uint64_t seed : {118, 169, 293, 334}) {  // of 400: in which one was waited for without end
    RunConfig config = audited_run(6'000, 0.3);
    config.segment = 2;
    CheatingSwarm swarm(config, test::honest_step, {.nodes = {}, .end_with_the_run = true}, seed);
    test::finish(*swarm.cluster, 900s);
    swarm.cluster->run_until(swarm.cluster->now() + 100s);
    for (std::size_t i = 0; i < CheatingSwarm::nodes; ++i)
      BOOST_TEST((swarm.cluster->node(i)->status({}).phase == "ended"), "seed " << seed << ", node " << i);
  }
}

// A false proof each second against another peer. Each checks the first one and never hears of a second.
BOOST_AUTO_TEST_CASE(a_flood_of_false_accusations) {
  CheatingSwarm quiet(audited_run(60'000), test::honest_step), swarm(audited_run(60'000), test::honest_step);
  test::finish(*quiet.cluster, 900s);
  sim::Cluster& cluster = *swarm.cluster;
  cluster.run_until(TimePoint{} + 20s);
  std::uint64_t sent = 0;
  for (std::uint64_t round = 0; !cluster.all_complete() && round < 900; ++round) {
    const std::size_t victim = std::array<std::size_t, 3>{0, 1, 3}[round % 3];
    const UpdateKey key{cluster.node(victim)->stream(), 3 + round};
    sent += cluster.revoke(2, gossip::Revocation::proof(swarm.ids.at(victim), key, {})).ok() ? 1 : 0;
    cluster.run_until(cluster.now() + 1s);
  }
  test::finish(cluster, 900s);
  BOOST_TEST(sent > 0u);
  BOOST_TEST(swarm.revocations().empty());
  for (const std::size_t i : {0, 1, 3}) BOOST_TEST(cluster.node(i)->protocol().peers().size() <= 2u);
  BOOST_TEST_MESSAGE("false accusations: " << sent << " made; honest peers made " << honest_updates(swarm)
                                           << " updates, " << honest_updates(quiet) << " without them");
}

// Every 100 ms it asks for the newest state twenty times, and charges the newest update twenty times.
BOOST_AUTO_TEST_CASE(a_flood_of_requests_for_states_and_of_charges) {
  std::uint64_t asked = 0, given = 0;
  const auto loses = [&given](sim::HostId from, sim::HostId to, const gossip::OutFrame& frame) {
    const bool answer = to == 2 && frame.head[0] == static_cast<std::uint8_t>(gossip::FrameType::state_data);
    given += answer && from == 0 && frame.size() > 40 ? 1 : 0;  // a refusal is shorter
    return answer;
  };
  const CheatKind flooder{.nodes = {}, .loses = loses};
  CheatingSwarm quiet(audited_run(400'000), test::honest_step), swarm(audited_run(400'000), test::honest_step, flooder);
  sim::Cluster& cluster = *swarm.cluster;
  quiet.cluster->run_until(TimePoint{} + 200s);
  while (cluster.now() < TimePoint{} + 200s) {
    cluster.run_until(cluster.now() + 100ms);
    const Node& victim = *cluster.node(0);
    const std::uint64_t made = victim.figures().own_updates();
    if (made == 0) continue;
    const UpdateKey state{victim.stream(), (made - 1) / 8 * 8 + 1}, update{victim.stream(), made};
    for (int i = 0; i < 20; ++i, ++asked) {
      cluster.send(2, 0, gossip::encode(gossip::StateWant{state, 0}));
      cluster.send(2, 0, gossip::encode(gossip::Charge{update}));
    }
  }
  const std::uint64_t made = cluster.node(0)->figures().own_updates();
  const std::uint64_t alone = quiet.cluster->node(0)->figures().own_updates();
  BOOST_TEST_MESSAGE("a flood: " << asked << " wishes, " << given << " states given, " << made << " updates, " << alone
                                 << " without it");
  BOOST_TEST(given > 0u);
  BOOST_TEST(given <= 2 + made / 8 / 10);  // twice the share of 0.05
  BOOST_TEST(made >= alone * 85 / 100);    // a tenth for charges
  BOOST_TEST(made < alone);                // they cost something
}

// Each part of its states comes twelve seconds after the wish for it. That helps it only where an auditor's log has
// lost the updates meanwhile, and then its states count as withheld.
BOOST_AUTO_TEST_CASE(states_that_come_late) {
  struct Late {
    TimePoint at;
    std::size_t to;
    Bytes frame;
  };
  std::deque<Late> late;
  CheatingSwarm* self = nullptr;
  const auto keeps = [&](sim::HostId from, sim::HostId to, const gossip::OutFrame& frame) {
    if (!gives_no_state(from, to, frame) || self == nullptr) return false;
    const bool again = !late.empty() && late.front().at <= self->cluster->now();
    if (!again) late.push_back({self->cluster->now() + 12s, to, gossip::OutFrame(frame).joined()});
    return !again;
  };
  CheatingSwarm swarm(audited_run(400'000), test::after_a_segment(ten_times_too_far), {.loses = keeps});
  self = &swarm;
  std::uint64_t given = 0;
  while (swarm.found_of(swarm.cheat()).differ == 0 && !swarm.cluster->all_complete()) {
    swarm.cluster->run_until(swarm.cluster->now() + 100ms);
    for (; !late.empty() && late.front().at <= swarm.cluster->now(); late.pop_front(), ++given)
      swarm.cluster->send(2, late.front().to, late.front().frame);
  }
  BOOST_TEST_MESSAGE("states that come late: found after " << swarm.cluster->node(2)->figures().own_updates()
                                                           << " updates, " << given << " parts of states given");
  BOOST_TEST(given > 0u);
  BOOST_TEST(swarm.found_of(swarm.cheat()).differ > 0u);
}

// Nobody can tell how it trains, nor prove that it withholds anything. Those who asked often enough name it alone.
BOOST_AUTO_TEST_CASE(states_that_are_withheld) {
  CheatingSwarm swarm(audited_run(400'000, 0.3), test::after_a_segment(ten_times_too_far), {.loses = gives_no_state});
  const auto warned = [&](std::size_t i) { return !swarm.cluster->node(i)->status({}).audit_trouble.empty(); };
  const TimePoint end = TimePoint{} + 900s;
  std::set<std::size_t> who;
  while (who.size() < 3 && swarm.cluster->now() < end && !swarm.cluster->all_complete()) {
    swarm.cluster->run_until(swarm.cluster->now() + 1s);
    for (const std::size_t i : {0, 1, 3})
      if (warned(i) && who.insert(i).second)
        BOOST_TEST_MESSAGE("node " << i << " warns after " << to_seconds(swarm.cluster->now() - TimePoint{}) << " s, "
                                   << swarm.cluster->node(2)->figures().own_updates() << " updates of it");
  }
  BOOST_TEST(who.size() == 3u);
  for (const std::size_t i : {0, 1, 3}) {
    const NodeStatus status = swarm.cluster->node(i)->status({});
    BOOST_TEST(status.audit_trouble.find("peer " + swarm.cheat().hex()) == 0u);
    BOOST_TEST(status.audit_trouble.find("rumor key revoke RUN " + swarm.cheat().hex()) != std::string::npos);
    for (const Contribution& one : status.contributions.nodes)
      BOOST_TEST((one.withheld >= WithheldStates::warned_at) == (one.node == swarm.cheat()));
  }
  BOOST_TEST(swarm.found_of(swarm.cheat()).differ == 0u);
  BOOST_TEST(swarm.revocations().empty());
}

BOOST_AUTO_TEST_SUITE_END()
