// States: what arrives has the root that was asked for, whoever gives it.
#include "gossip/audits/states.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/gossip/audits/audited_world.h"

namespace rumor::gossip {

namespace {

using test::AuditedWorld;
using test::FakeAuditor;

Bytes random_state(std::size_t bytes, std::uint64_t seed = 3) {
  Prng prng(seed);
  Bytes made(bytes);
  for (auto& byte : made) byte = static_cast<std::uint8_t>(prng.next());
  return made;
}

// Node 0 wants the state before an update of node 1, which node 1 and perhaps others keep.
struct Fetching : AuditedWorld {
  explicit Fetching(std::size_t nodes, std::size_t bytes = 300'000) : AuditedWorld(nodes), state(random_state(bytes)) {
    start();
    update = update_of(1, 7);
    kept = keep_state(state);
  }
  void keep(std::size_t i) { auditors[i].states[update] = kept; }
  void want(std::vector<std::size_t> holders) {
    WantedState wanted{update, kept->root, state.size(), {}};
    for (const std::size_t i : holders) wanted.holders.push_back(world.nodes[i].id);
    world.with(0, [&](Protocol& protocol, TimePoint now, Outbox& out) { protocol.want_state(wanted, now, out); });
  }
  bool has_it() const {
    const auto found = auditors[0].arrived.find(update);
    return found != auditors[0].arrived.end() && found->second == state;
  }
  bool failed() const { return auditors[0].failed == std::vector{update}; }
  Bytes state;
  UpdateKey update;
  std::shared_ptr<const KeptState> kept;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(states)

BOOST_AUTO_TEST_CASE(a_state_arrives_whole) {
  for (const std::size_t bytes : {std::size_t{1}, state_piece_bytes, state_piece_bytes + 1, std::size_t{1'000'000}}) {
    Fetching run(2, bytes);
    run.keep(1);
    run.want({1});
    run.world.run_for(2s);
    BOOST_TEST(run.has_it());
    BOOST_TEST(run.auditors[1].asked == 1u);  // the auditor grants a state, not its parts
  }
}

BOOST_AUTO_TEST_CASE(a_refusal_leads_to_the_next_holder) {
  Fetching run(3);
  run.keep(2);
  run.want({1, 2});
  run.world.run_for(2s);
  BOOST_TEST(run.has_it());
  BOOST_TEST(run.world.nodes[0].protocol->peers().size() == 2u);  // to refuse is no offence
}

BOOST_AUTO_TEST_CASE(what_is_wanted_twice_is_asked_of_the_holders_of_both_wishes) {
  Fetching run(3);
  run.keep(2);
  run.want({1});
  run.want({1, 2});
  run.world.run_for(2s);
  BOOST_TEST(run.has_it());
  BOOST_TEST(run.auditors[1].asked == 1u);
  BOOST_TEST(run.auditors[2].asked == 1u);
}

BOOST_AUTO_TEST_CASE(nobody_has_it) {
  Fetching run(3);
  run.want({1, 2});
  run.world.run_for(2s);
  BOOST_TEST(run.failed());
}

BOOST_AUTO_TEST_CASE(a_wrong_state_bans_its_sender) {
  Fetching run(3);
  Bytes other = run.state;
  other[200'000] ^= 1;
  run.auditors[1].states[run.update] = keep_state(other);
  run.keep(2);
  run.want({1, 2});
  run.world.run_for(3s);
  BOOST_TEST(run.has_it());
  BOOST_TEST(run.world.nodes[0].protocol->peers().size() == 1u);
}

// The list is right, and a piece is not.
BOOST_AUTO_TEST_CASE(a_wrong_piece_bans_its_sender) {
  Fetching run(3);
  KeptState other = *run.kept;
  other.bytes[200'000] ^= 1;
  run.auditors[1].states[run.update] = std::make_shared<const KeptState>(other);
  run.want({1});
  run.world.run_for(3s);
  BOOST_TEST(run.failed());
  BOOST_TEST(run.world.nodes[0].protocol->peers().size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_silent_holder_is_left) {
  Fetching run(3);
  run.keep(1);
  run.keep(2);
  run.world.drops = [](std::size_t from, std::size_t, std::uint8_t type) {
    return from == 1 && type == static_cast<std::uint8_t>(FrameType::state_data);
  };
  run.want({1, 2});
  run.world.run_for(States::silent_max - 1s);
  BOOST_TEST(!run.has_it());
  run.world.run_for(3s);
  BOOST_TEST(run.has_it());
}

// The same holder is asked again, over a new link.
BOOST_AUTO_TEST_CASE(a_link_that_breaks_is_no_refusal) {
  Fetching run(3, 5'000'000);
  run.keep(1);
  run.want({1});
  run.world.run_for(100ms);
  run.world.cut_between(0, 1);
  run.world.run_for(100ms);
  BOOST_TEST(!run.has_it());
  run.world.run_for(10s);
  BOOST_TEST(run.has_it());
}

BOOST_AUTO_TEST_CASE(an_unlinked_holder_is_dialled) {
  AuditedWorld run(2);
  run.world.start_all();
  run.world.run_for(2s);
  run.world.cut_between(0, 1);
  const Bytes state = random_state(100);
  const UpdateKey update = run.update_of(1, 3);
  run.auditors[1].states[update] = keep_state(state);
  WantedState wanted{update, keep_state(state)->root, state.size(), {run.world.nodes[1].id}};
  run.world.with(0, [&](Protocol& protocol, TimePoint now, Outbox& out) { protocol.want_state(wanted, now, out); });
  run.world.run_for(20s);
  BOOST_TEST(run.auditors[0].arrived.contains(update));
}

// A follower has one link, and peers may have as many as they take. The link for the state comes beside them, and goes.
BOOST_AUTO_TEST_CASE(a_state_is_fetched_beside_the_links_that_both_sides_want) {
  AuditedWorld run(6);
  run.world.link_counts[0] = {.low = 1, .target = 1, .high = 1, .dialled = 1};
  for (std::size_t i = 1; i < 6; ++i) run.world.link_counts[i] = {.low = 2, .target = 3, .high = 3, .dialled = 2};
  run.world.start_all();
  run.world.run_for(10s);
  const std::size_t links = run.world.link_count();
  const auto states = [&](std::size_t i) { return random_state(100'000, i); };
  for (std::size_t i = 1; i < 6; ++i) run.auditors[i].states[run.update_of(i, 3)] = keep_state(states(i));
  for (std::size_t i = 1; i < 6; ++i) {
    const WantedState wanted{run.update_of(i, 3), keep_state(states(i))->root, 100'000, {run.world.nodes[i].id}};
    run.world.with(0, [&](Protocol& node, TimePoint now, Outbox& out) { node.want_state(wanted, now, out); });
  }
  run.world.run_for(10s);
  BOOST_TEST(run.auditors[0].failed.empty());
  for (std::size_t i = 1; i < 6; ++i) BOOST_TEST((run.auditors[0].arrived[run.update_of(i, 3)] == states(i)));
  BOOST_TEST(run.world.link_count() > links);
  run.world.run_for(60s);
  BOOST_TEST(run.world.link_count() <= links);
}

// Two links at a time for the errands of others, whatever they say.
BOOST_AUTO_TEST_CASE(few_come_for_states_at_a_time) {
  AuditedWorld run(6);
  run.world.link_counts[1] = {.low = 1, .target = 1, .high = 1, .dialled = 1};
  for (const std::size_t i : {0, 2, 3, 4, 5})
    run.world.link_counts[i] = {.low = 1, .target = 2, .high = 2, .dialled = 1};
  run.world.start_all();
  run.world.run_for(10s);
  const Bytes state = random_state(100);
  const UpdateKey update = run.update_of(1, 3);
  run.auditors[1].states[update] = keep_state(state);
  const WantedState wanted{update, keep_state(state)->root, state.size(), {run.world.nodes[1].id}};
  for (const std::size_t i : {0, 2, 3, 4, 5})
    run.world.with(i, [&](Protocol& node, TimePoint now, Outbox& out) { node.want_state(wanted, now, out); });
  run.world.run_for(5s);
  std::size_t arrived = 0;
  for (const std::size_t i : {0, 2, 3, 4, 5}) arrived += run.auditors[i].arrived.size();
  BOOST_TEST(arrived >= 2u);
  BOOST_TEST(arrived <= 3u);  // one of them may be linked to it anyway
}

// A holder that nobody can dial is given up at once, and not after half a minute.
BOOST_AUTO_TEST_CASE(a_holder_that_does_not_answer_is_left_soon) {
  AuditedWorld run(3);
  run.start();
  const Bytes state = random_state(100);
  const UpdateKey update = run.update_of(1, 3);
  run.auditors[2].states[update] = keep_state(state);
  const WantedState wanted{update, keep_state(state)->root, state.size(), {run.world.nodes[1].id,
                                                                                 run.world.nodes[2].id}};
  run.world.keep_apart(0, 1);
  run.world.with(0, [&](Protocol& node, TimePoint now, Outbox& out) { node.want_state(wanted, now, out); });
  run.world.run_for(5s);
  BOOST_TEST(run.auditors[0].arrived.contains(update));
}

BOOST_AUTO_TEST_CASE(sizes_and_numbers_are_bounded) {
  Fetching run(2);
  WantedState huge{run.update, run.kept->root, limits::state_bytes_max + 1, {run.world.nodes[1].id}};
  run.world.with(0, [&](Protocol& protocol, TimePoint now, Outbox& out) { protocol.want_state(huge, now, out); });
  BOOST_TEST(run.failed());
  for (std::uint64_t seq = 10; seq < 40; ++seq) {
    WantedState one{run.update_of(1, seq), run.kept->root, 100, {run.world.nodes[1].id}};
    run.world.with(0, [&](Protocol& protocol, TimePoint now, Outbox& out) { protocol.want_state(one, now, out); });
  }
  BOOST_TEST(run.auditors[0].failed.size() == 1 + 30 - (States::waiting_max + 1));
  run.world.run_for(5s);
  BOOST_TEST(run.auditors[0].failed.size() == 31u);
}

BOOST_AUTO_TEST_CASE(parts_that_nobody_wanted_close_the_link) {
  Fetching run(2);
  run.world.inject(1, 0, encode(StateData{run.update, 0, run.kept->list}));
  run.world.run_for(100ms);
  BOOST_TEST(test::has_line(run.world.nodes[0].closes, "not wanted"));
}

BOOST_AUTO_TEST_CASE(parts_are_for_those_who_were_granted_the_state) {
  Fetching run(2);
  run.keep(1);
  run.world.inject(0, 1, encode(StateWant{run.update, 1}));
  run.world.run_for(100ms);
  BOOST_TEST(test::has_line(run.world.nodes[1].closes, "not given"));
  BOOST_TEST(run.auditors[1].asked == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip
