// Draws: private, bounded, of whole segments that somebody may still have the state of.
#include <boost/test/unit_test.hpp>

#include "runtime/audit/draws.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(draws)

namespace {

template <class Id>
Id id(std::size_t number) {
  Id made;
  made.bytes[0] = static_cast<std::uint8_t>(number);
  made.bytes[1] = static_cast<std::uint8_t>(number >> 8);
  return made;
}

struct Seen {
  audit::Draws draws;
  gossip::HaveSet have;

  explicit Seen(std::size_t secret, std::uint64_t segment = 4)
      : draws(id<Hash256>(secret), id<NodeId>(0), segment) {}
  void add(std::size_t peer, std::uint64_t seq) {
    const UpdateKey key{id<StreamId>(peer), seq};
    have.insert(key);
    draws.on_update(key, id<NodeId>(peer), have);
  }
  void add(std::size_t peer, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t seq = first; seq <= last; ++seq) add(peer, seq);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_segment_counts_once_all_of_it_is_here_in_any_order) {
  Seen seen(1);
  for (const std::uint64_t seq : {7, 5, 8}) seen.add(1, seq);
  BOOST_TEST(!seen.draws.next(seen.have).has_value());
  seen.add(1, 6);
  const auto drawn = seen.draws.next(seen.have);
  BOOST_REQUIRE(drawn.has_value());
  BOOST_TEST(drawn->first == 5u);
  BOOST_TEST(drawn->last == 8u);
  BOOST_TEST((drawn->origin == id<NodeId>(1)));
  BOOST_TEST(!seen.draws.next(seen.have).has_value());
}

BOOST_AUTO_TEST_CASE(own_segments_and_runs_without_segments_draw_nothing) {
  Seen seen(1), none(1, 0);
  seen.add(0, 1, 40);
  none.add(1, 1, 40);
  BOOST_TEST(seen.draws.candidates() == 0u);
  BOOST_TEST(none.draws.candidates() == 0u);
}

BOOST_AUTO_TEST_CASE(first_segments_take_turns_with_the_others) {
  Seen seen(1);
  for (std::size_t peer = 1; peer <= 3; ++peer) seen.add(peer, 1, 12);
  std::vector<bool> first;
  while (const auto drawn = seen.draws.next(seen.have)) first.push_back(drawn->first == 1);
  BOOST_TEST(first == std::vector<bool>({true, false, true, false, true, false, false, false, false}),
             boost::test_tools::per_element());
}

// Each secret draws others first; over many secrets each of 16 segments comes first about equally often.
BOOST_AUTO_TEST_CASE(the_draw_depends_on_the_secret_alone) {
  std::vector<std::size_t> came_first(16);
  for (std::size_t secret = 1; secret <= 1600; ++secret) {
    Seen seen(secret), again(secret);
    for (std::size_t peer = 1; peer <= 16; ++peer) seen.add(peer, 5, 8);
    for (std::size_t peer = 16; peer >= 1; --peer) again.add(peer, 5, 8);
    const auto drawn = seen.draws.next(seen.have);
    BOOST_TEST((drawn->stream == again.draws.next(again.have)->stream));
    ++came_first[drawn->stream.bytes[0] - 1u];
  }
  for (const std::size_t times : came_first) {
    BOOST_TEST(times > 60u);
    BOOST_TEST(times < 140u);
  }
}

BOOST_AUTO_TEST_CASE(states_that_nobody_keeps_are_not_asked_for) {
  Seen seen(1);
  seen.add(1, 5, 16);
  seen.add(1, 17);  // the origin keeps the states before 9, 13 and 17, and soon not that before 9
  std::set<std::uint64_t> firsts;
  while (const auto drawn = seen.draws.next(seen.have)) firsts.insert(drawn->first);
  BOOST_TEST(firsts == std::set<std::uint64_t>({13}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(at_the_end_the_last_segments_count_although_they_are_short) {
  Seen seen(1);
  seen.add(1, 5, 10);
  seen.add(2, 5, 8);
  seen.draws.end(seen.have);
  std::map<std::uint64_t, std::uint64_t> drawn;
  while (const auto one = seen.draws.next(seen.have)) drawn[one->first] = one->last;
  BOOST_TEST((drawn == std::map<std::uint64_t, std::uint64_t>{{5, 8}, {9, 10}}));
}

BOOST_AUTO_TEST_CASE(many_peers_cost_bounded_memory) {
  Seen seen(1);
  for (std::size_t peer = 1; peer <= 2000; ++peer) seen.add(peer, 1, 8);
  BOOST_TEST(seen.draws.candidates() == audit::Draws::candidates_max);
}

BOOST_AUTO_TEST_SUITE_END()
