// The length of a round follows the delay of updates, slowly, within bounds.
#include "runtime/exchange/round_length.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>

using namespace rumor;

namespace {

// Updates come so many mini-batches late: the staleness is the round in which they are made, and that delay in rounds.
void live(RoundLength& round, double delay, std::uint32_t updates) {
  for (std::uint32_t i = 0; i < updates; ++i) round.published(1 + delay / round.length());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(round_length)

BOOST_AUTO_TEST_CASE(it_grows_to_the_delay_and_stays) {
  for (const double delay : {2.0, 5.0, 9.0, 14.0}) {
    RoundLength round(4, 16);
    live(round, delay, 400);
    BOOST_TEST(round.length() * 1.5 >= delay);
    BOOST_TEST(round.length() <= std::max(delay + 0.5, 4.0));
    const std::uint32_t reached = round.length();
    live(round, delay, 400);
    BOOST_TEST(round.length() == reached);
  }
}

BOOST_AUTO_TEST_CASE(it_changes_once_in_some_updates_and_by_two_at_most) {
  RoundLength round(4, 16);
  live(round, 100, RoundLength::patience - 1);
  BOOST_TEST(round.length() == 4u);
  live(round, 100, 1);
  BOOST_TEST(round.length() == 2 * 4u);
  live(round, 100, RoundLength::patience - 1);
  BOOST_TEST(round.length() == 2 * 4u);
  live(round, 100, 10 * RoundLength::patience);
  BOOST_TEST(round.length() == 16u);
}

// Where updates come before the round they were made in is over here, it is longer than it need be.
BOOST_AUTO_TEST_CASE(it_shrinks_when_updates_are_early) {
  RoundLength round(4, 16);
  live(round, 16, 400);
  const std::uint32_t before = round.length();
  for (std::uint32_t i = 0; i < RoundLength::patience; ++i) round.published(1.25);
  BOOST_TEST(round.length() == before / 2);
  for (int i = 0; i < 400; ++i) round.published(0);
  BOOST_TEST(round.length() == 4u);
}

BOOST_AUTO_TEST_CASE(a_length_of_the_run_file_stays) {
  RoundLength round(5, 5);
  live(round, 100, 400);
  BOOST_TEST(round.length() == 5u);
}

// A longer round would lose entries, since an update holds a fifth of the parameters at most.
BOOST_AUTO_TEST_CASE(it_leaves_room_for_all_entries_of_a_round) {
  const auto longest = [](double density) {
    RoundLength round = RoundLength::following(density);
    live(round, 100, 400);
    return round.length();
  };
  BOOST_TEST(longest(0) == 16u);  // a budget in bytes
  BOOST_TEST(longest(0.001) == 16u);
  BOOST_TEST(longest(0.02) == 10u);
  BOOST_TEST(longest(0.05) == 4u);
  BOOST_TEST(longest(0.07) == 2u);
  BOOST_TEST(longest(0.2) == 1u);
  BOOST_TEST(RoundLength::following(0.001).length() == 4u);
}

BOOST_AUTO_TEST_SUITE_END()
