// State shares: one at once, then by own segments, four saved at most, whoever else asks.
#include "runtime/node/state_shares.h"

#include <boost/test/unit_test.hpp>

using namespace rumor;

BOOST_AUTO_TEST_SUITE(state_shares)

namespace {

NodeId asker(std::size_t number) {
  NodeId id;
  for (std::size_t i = 0; i < 8; ++i) id.bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return id;
}

std::size_t taken(StateShares& shares, std::size_t number, std::uint64_t segments) {
  std::size_t count = 0;
  while (shares.take(asker(number), segments)) ++count;
  return count;
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_at_once_and_then_by_segments) {
  StateShares shares(0.25);
  BOOST_TEST(taken(shares, 1, 100) == 1u);
  BOOST_TEST(taken(shares, 1, 103) == 0u);
  BOOST_TEST(taken(shares, 1, 104) == 1u);
  BOOST_TEST(taken(shares, 1, 112) == 2u);
  BOOST_TEST(taken(shares, 1, 10'000) == 4u);
}

BOOST_AUTO_TEST_CASE(askers_do_not_share_their_shares) {
  StateShares shares(0.1);
  BOOST_TEST(taken(shares, 1, 0) == 1u);
  BOOST_TEST(taken(shares, 2, 0) == 1u);
  BOOST_TEST(taken(shares, 1, 0) == 0u);
}

BOOST_AUTO_TEST_CASE(a_flood_of_askers_keeps_within_its_memory) {
  StateShares shares(0.1);
  for (std::size_t number = 0; number < 3 * StateShares::askers_max; ++number)
    BOOST_TEST(taken(shares, number, 5) == 1u);
  BOOST_TEST(shares.askers() <= StateShares::askers_max);
}

BOOST_AUTO_TEST_SUITE_END()
