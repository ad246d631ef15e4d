// The table of contributions: sums of signed headers that outlive the log and restarts, leave with a revocation, and
// say what a joiner by snapshot cannot know.
#include "runtime/contributions/contributions.h"

#include <boost/test/unit_test.hpp>

#include "gossip/trust/signing.h"
#include "tests/unit/runtime/held.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(contributions)

namespace {

// The first process of a node, the second, ...
StreamId stream_of_node(std::uint8_t node, std::uint64_t life = 1) {
  return gossip::stream_of(test::node(node), life);
}

gossip::StoredUpdate update_with(const StreamId& stream, std::uint8_t node, std::uint64_t seq, std::uint32_t samples) {
  Prng prng = Prng::named(seq, "update", node);
  auto update = test::stored(test::small_layout(), test::random_update(prng, test::small_layout().params(), 9), stream,
                             seq);
  update.header.origin = test::node(node);
  update.header.samples = samples;
  return update;
}

// Updates 1 to `last` of the node, update k with 10 k samples.
void train(test::Held& held, std::uint8_t node, std::uint64_t last, std::uint64_t life = 1) {
  for (std::uint64_t seq = 1; seq <= last; ++seq) {
    const auto samples = static_cast<std::uint32_t>(10 * seq);
    BOOST_TEST_REQUIRE(held.accept(update_with(stream_of_node(node, life), node, seq, samples)).ok());
  }
}

ContributionTable table_of(const test::Held& held, std::vector<NodeId> nodes = {}) {
  return held.contributions().table(held.have(), held.replica().samples(), nodes);
}

Contribution of(const ContributionTable& table, std::uint8_t node) {
  for (const Contribution& one : table.nodes)
    if (one.node == test::node(node)) return one;
  return {.node = {}, .stream = {}};
}

// A later process with this checkpoint, this disk and this table.
void restart(test::Held& again, Disk& disk, const ReplicaState& checkpoint, const Bytes& table) {
  BOOST_TEST_REQUIRE(again.open(disk).ok());
  BOOST_TEST_REQUIRE(again.replica().restore(checkpoint).ok());
  if (!table.empty()) again.contributions() = Contributions::decode(test::some_run(), table).value();
  again.contributions().set_time(9'000);
  again.replay();
}

}  // namespace

BOOST_AUTO_TEST_CASE(samples_add_up_for_each_node_over_its_streams) {
  test::Held held;
  held.contributions().set_time(1'000);
  train(held, 1, 2);
  held.contributions().set_time(2'000);
  train(held, 1, 1, 2);
  train(held, 2, 3);
  (void)held.accept(update_with(stream_of_node(2), 2, 3, 30));  // once more
  const ContributionTable table = table_of(held);
  BOOST_TEST_REQUIRE(table.nodes.size() == 2u);
  BOOST_TEST(table.streams.size() == 3u);
  BOOST_TEST(table.samples_unknown == 0u);
  const Contribution one = of(table, 1);
  BOOST_TEST(one.streams == 2u);
  BOOST_TEST(one.updates == 3u);
  BOOST_TEST(one.samples == 40u);
  BOOST_TEST(one.first_seen == 1'000u);
  BOOST_TEST(one.last_seen == 2'000u);
  BOOST_TEST(one.share().value() == 0.4, boost::test_tools::tolerance(1e-9));
  BOOST_TEST((table.nodes[0].node == test::node(2)));  // the one with most samples comes first
}

BOOST_AUTO_TEST_CASE(the_log_may_drop_what_was_counted) {
  test::Held held(1);  // its log keeps the newest update only
  train(held, 1, 50);
  BOOST_TEST(held.log().size() == 1u);
  BOOST_TEST(of(table_of(held), 1).samples == 12'750u);
  BOOST_TEST(of(table_of(held), 1).updates_unknown == 0u);
}

BOOST_AUTO_TEST_CASE(a_restart_counts_nothing_twice_and_nothing_less) {
  MemoryDisk disk;
  ReplicaState checkpoint;
  Bytes older, newer;
  {
    test::Held held;
    BOOST_TEST_REQUIRE(held.open(disk).ok());
    held.contributions().set_time(1'000);
    train(held, 1, 2);
    older = held.contributions().encode(test::some_run());
    checkpoint = held.replica().state();
    train(held, 2, 3);
    newer = held.contributions().encode(test::some_run());
  }
  // A table as old as the checkpoint, one of a later save, and none, which the log makes good.
  for (const Bytes& table : {older, newer, Bytes()}) {
    test::Held again;
    restart(again, disk, checkpoint, table);
    BOOST_TEST(of(table_of(again), 1).samples == 30u);
    BOOST_TEST(of(table_of(again), 2).samples == 60u);
    BOOST_TEST(table_of(again).samples_unknown == 0u);
    BOOST_TEST(of(table_of(again), 1).first_seen == (table.empty() ? 9'000u : 1'000u));
  }
}

BOOST_AUTO_TEST_CASE(without_table_and_log_the_samples_are_unknown) {
  test::Held held;
  train(held, 1, 4);
  MemoryDisk empty;
  test::Held again;
  restart(again, empty, held.replica().state(), {});
  const ContributionTable table = table_of(again);
  BOOST_TEST_REQUIRE(table.nodes.size() == 1u);
  BOOST_TEST(table.nodes[0].name() == "unknown");
  BOOST_TEST(table.nodes[0].updates_unknown == 4u);
  BOOST_TEST(table.samples_unknown == 100u);
}

// Such a table says more than the checkpoint holds, and the log is gone: the rest of the sum is not guessed.
BOOST_AUTO_TEST_CASE(a_part_of_a_stream_that_is_lost_makes_its_samples_unknown) {
  test::Held held;
  train(held, 1, 2);
  const ReplicaState checkpoint = held.replica().state();
  train(held, 1, 4);
  train(held, 2, 2);
  MemoryDisk empty;
  test::Held again;
  restart(again, empty, checkpoint, held.contributions().encode(test::some_run()));
  const ContributionTable table = table_of(again);
  BOOST_TEST_REQUIRE(table.nodes.size() == 1u);  // nothing is left of node 2
  BOOST_TEST(of(table, 1).updates_unknown == 2u);
  BOOST_TEST(of(table, 1).samples == 0u);
  BOOST_TEST(!of(table, 1).share().has_value());
  BOOST_TEST(table.samples_unknown == 30u);
}

BOOST_AUTO_TEST_CASE(what_is_taken_back_leaves_the_sums) {
  test::Held held;
  train(held, 1, 4);
  train(held, 2, 2);
  const gossip::Revocation part{test::node(1), stream_of_node(1), {2, 3}};
  BOOST_TEST_REQUIRE(held.revoke(part).ok());
  BOOST_TEST(of(table_of(held), 1).samples == 50u);
  BOOST_TEST(of(table_of(held), 1).taken_back == 2u);
  const gossip::Revocation all{test::node(2), {}};
  BOOST_TEST_REQUIRE(held.revoke(all).ok());
  const Contribution two = of(table_of(held), 2);
  BOOST_TEST(two.updates == 0u);
  BOOST_TEST(two.samples == 0u);
  BOOST_TEST(two.taken_back == 2u);
  BOOST_TEST(held.replica().samples() == 50u);

  MemoryDisk empty;
  test::Held again;
  restart(again, empty, held.replica().state(), held.contributions().encode(test::some_run()));
  BOOST_TEST(of(table_of(again), 1).samples == 50u);
  BOOST_TEST(of(table_of(again), 1).taken_back == 2u);
  BOOST_TEST(of(table_of(again), 2).taken_back == 2u);
  BOOST_TEST_REQUIRE(held.take_back({stream_of_node(1), 4}).ok());  // evidence, not a revocation
  BOOST_TEST(of(table_of(held), 1).samples == 10u);
  BOOST_TEST(of(table_of(held), 1).taken_back == 2u);
}

BOOST_AUTO_TEST_CASE(a_joiner_by_snapshot_knows_numbers_but_not_samples_before_its_cut) {
  test::Held giver, joiner;
  train(giver, 1, 4);
  train(giver, 2, 2);
  train(joiner, 2, 1);  // it has seen one of them itself
  joiner.contributions().set_time(5'000);
  test::give_snapshot(giver, joiner);
  ContributionTable table = table_of(joiner);
  BOOST_TEST(of(table, 2).samples == 10u);
  BOOST_TEST(of(table, 2).updates_unknown == 1u);
  BOOST_TEST(table.samples_unknown == 120u);
  BOOST_TEST(of(table, 1).updates == 0u);  // whose stream it is nobody has said

  table = table_of(joiner, {test::node(7), test::node(1)});
  BOOST_TEST(of(table, 1).updates == 4u);
  BOOST_TEST(of(table, 1).updates_unknown == 4u);
  BOOST_TEST(of(table, 1).first_seen == 5'000u);

  const auto later = update_with(stream_of_node(1), 1, 5, 50);
  BOOST_TEST_REQUIRE(joiner.accept(later).ok());
  BOOST_TEST(of(table_of(joiner), 1).samples == 50u);
  BOOST_TEST(of(table_of(joiner), 1).updates_unknown == 4u);
  BOOST_TEST(!of(table_of(joiner), 1).share().has_value());
  BOOST_TEST(table_of(joiner).samples_unknown == 120u);
}

// The joiner's log still has an update that the owner has taken back meanwhile.
BOOST_AUTO_TEST_CASE(a_snapshot_without_revoked_updates_takes_them_off_the_sums) {
  test::Held giver, joiner;
  train(joiner, 1, 3);
  train(joiner, 2, 1);
  train(giver, 1, 3);
  BOOST_TEST_REQUIRE(giver.revoke({test::node(1), stream_of_node(1), {3, 3}}).ok());
  test::give_snapshot(giver, joiner);
  BOOST_TEST(of(table_of(joiner), 1).samples == 30u);
  BOOST_TEST(of(table_of(joiner), 1).taken_back == 1u);
  BOOST_TEST(of(table_of(joiner), 2).samples == 10u);
  BOOST_TEST(table_of(joiner).samples_unknown == 0u);
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_refused) {
  test::Held held;
  train(held, 1, 2);
  Bytes table = held.contributions().encode(test::some_run());
  RunId other;
  BOOST_TEST((Contributions::decode(other, table).error().code == Errc::mismatch));
  for (std::size_t at = 0; at < table.size(); ++at) {
    ++table[at];
    BOOST_TEST(!Contributions::decode(test::some_run(), table).ok());
    --table[at];
    BOOST_TEST(!Contributions::decode(test::some_run(), BytesView(table).first(at)).ok());
  }
  BOOST_TEST(Contributions::decode(test::some_run(), table).ok());
}

BOOST_AUTO_TEST_SUITE_END()
