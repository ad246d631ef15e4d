// Kept states: those of the last three segments, and who holds one may go on holding it.
#include <boost/test/unit_test.hpp>

#include "runtime/audit/kept_states.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(kept_states)

BOOST_AUTO_TEST_CASE(the_last_three_are_kept) {
  audit::KeptStates states;
  std::shared_ptr<const gossip::KeptState> handed_out;
  for (std::uint64_t first = 1; first <= 65; first += 16) {
    states.keep(first, Bytes(1000, static_cast<std::uint8_t>(first)));
    if (first == 1) handed_out = states.find(1);
  }
  BOOST_TEST(states.find(17) == nullptr);
  BOOST_TEST(states.find(34) == nullptr);
  for (const std::uint64_t first : {33, 49, 65}) {
    BOOST_REQUIRE(states.find(first) != nullptr);
    BOOST_TEST(states.find(first)->bytes[999] == first);
  }
  BOOST_TEST(handed_out->bytes[0] == 1u);
  BOOST_TEST(states.memory_bytes() >= 3000u);
  BOOST_TEST(states.memory_bytes() < 3500u);
}

BOOST_AUTO_TEST_SUITE_END()
