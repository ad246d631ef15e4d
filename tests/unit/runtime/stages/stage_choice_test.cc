// Which stage a peer chooses, and that many peers which come and go fill every stage with few moves.
#include "runtime/stages/stage_choice.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>

#include "runtime/base/prng.h"
#include "runtime/base/text.h"

using namespace rumor;

namespace {

NodeId chooser(std::uint32_t number) {
  NodeId id{};
  for (std::size_t byte = 0; byte < 4; ++byte) id.bytes[byte] = static_cast<std::uint8_t>(number >> (8 * byte));
  return id;
}

std::vector<StagePeer> peers_in(const std::vector<std::uint32_t>& stages) {
  std::vector<StagePeer> peers;
  for (const std::uint32_t stage : stages) peers.push_back({chooser(1000 + static_cast<std::uint32_t>(peers.size())),
                                                            stage});
  return peers;
}

TimePoint moment(double seconds) { return TimePoint(from_seconds(seconds)); }

// Looks once a second from second 0 on, always with this result. Returns the second of the move; -1: within a minute
// there is none.
int second_of_move(const NodeId& self, std::uint32_t stage, std::uint32_t stages, const std::vector<StagePeer>& live) {
  StageWatch watch(self, stage, stages);
  for (int second = 0; second < 60; ++second) {
    if (!watch.wants_look(moment(second), 0, true)) continue;
    if (const auto choice = watch.on_look(moment(second), live)) {
      BOOST_TEST(choice->stage != stage);
      return second;
    }
  }
  return -1;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stage_choice)

BOOST_AUTO_TEST_CASE(the_stage_with_fewest_live_peers_is_chosen) {
  const NodeId self = chooser(1);
  BOOST_TEST(choose_stage(self, 3, peers_in({1, 3, 3})).stage == 2U);
  BOOST_TEST(choose_stage(self, 3, peers_in({1, 3, 3})).why == "stage 2 has no live peer");
  BOOST_TEST(choose_stage(self, 3, peers_in({1, 1, 2, 3, 3})).stage == 2U);
  BOOST_TEST(choose_stage(self, 3, peers_in({1, 1, 2, 3, 3})).why == "stage 2 has 1 live peer");
  BOOST_TEST(choose_stage(self, 2, peers_in({1, 9, 0})).stage == 2U);
  BOOST_TEST(choose_stage(self, 1, {}).stage == 1U);
}

BOOST_AUTO_TEST_CASE(peers_that_start_together_spread) {
  std::map<std::uint32_t, int> chosen;
  for (std::uint32_t one = 0; one < 300; ++one) ++chosen[choose_stage(chooser(one), 3, {}).stage];
  for (std::uint32_t stage = 1; stage <= 3; ++stage) BOOST_TEST((chosen[stage] > 70 && chosen[stage] < 130));
  BOOST_TEST(choose_stage(chooser(5), 3, {}).stage == choose_stage(chooser(5), 3, {}).stage);
}

BOOST_AUTO_TEST_CASE(among_equals_a_peer_goes_on_where_it_was) {
  for (std::uint32_t kept = 1; kept <= 3; ++kept) {
    BOOST_TEST(choose_stage(chooser(1), 3, {}, kept).stage == kept);
    BOOST_TEST(choose_stage(chooser(1), 3, {}, kept).why ==
               str("stage ", kept, " has no live peer, as 2 others have; this peer has kept its weights"));
  }
  BOOST_TEST(choose_stage(chooser(1), 3, peers_in({1, 3}), 1).stage == 2U);
  BOOST_TEST(choose_stage(chooser(1), 3, peers_in({1, 3}), 4).stage == 2U);
}

BOOST_AUTO_TEST_CASE(a_peer_looks_only_while_nothing_is_counted) {
  StageWatch watch(chooser(1), 1, 2);
  BOOST_TEST(!watch.wants_look(moment(2.9), 0, true));
  BOOST_TEST(watch.wants_look(moment(3), 0, true));
  BOOST_TEST(!watch.wants_look(moment(3.5), 0, true));
  BOOST_TEST(watch.wants_look(moment(4), 0, true));
  BOOST_TEST(!watch.wants_look(moment(5), 1, true));
  BOOST_TEST(!watch.wants_look(moment(7.9), 1, true));
  BOOST_TEST(watch.wants_look(moment(8), 1, true));
  BOOST_TEST(!watch.wants_look(moment(20), 1, false));
  BOOST_TEST(!watch.wants_look(moment(22.9), 1, true));
}

BOOST_AUTO_TEST_CASE(one_after_the_other_may_move_to_an_empty_stage) {
  // Four peers of stage 1 and one of stage 2; stage 3 is empty.
  std::vector<StagePeer> all = peers_in({1, 1, 1, 1, 2});
  std::set<int> seconds;
  for (const StagePeer& self : all) {
    std::vector<StagePeer> others = all;
    std::erase_if(others, [&](const StagePeer& peer) { return peer.node == self.node; });
    const int second = second_of_move(self.node, self.stage, 3, others);
    if (self.stage == 2) BOOST_TEST(second == -1);
    else seconds.insert(second);
  }
  BOOST_TEST((seconds == std::set<int>{9, 19, 29, 39}));
}

BOOST_AUTO_TEST_CASE(a_peer_moves_only_if_the_stage_was_empty_in_all_looks) {
  const auto without = peers_in({1, 2}), with = peers_in({1, 2, 3});
  StageWatch watch(chooser(1), 1, 3);
  std::optional<StageChoice> choice;
  for (int second = 3; second < 9; ++second) {
    BOOST_TEST(watch.wants_look(moment(second), 0, true));
    choice = watch.on_look(moment(second), second == 8 ? with : without);
    BOOST_TEST(!choice);
  }
  for (int second = 9; second < 15; ++second) BOOST_TEST(!watch.on_look(moment(second), without));
  // A micro-batch that is counted meanwhile begins all anew.
  BOOST_TEST(!watch.wants_look(moment(15), 1, true));
  BOOST_TEST(!watch.on_look(moment(15.5), without));
  BOOST_TEST(!watch.on_look(moment(18), without));
}

BOOST_AUTO_TEST_CASE(nobody_moves_where_every_stage_is_served_or_nobody_can_be_spared) {
  BOOST_TEST(second_of_move(chooser(1), 1, 3, peers_in({1, 2, 3})) == -1);
  BOOST_TEST(second_of_move(chooser(1), 1, 3, peers_in({2, 2})) == -1);
  BOOST_TEST(second_of_move(chooser(1), 1, 3, {}) == -1);
}

BOOST_AUTO_TEST_SUITE_END()
