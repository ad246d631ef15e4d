// States that were withheld: counted only where the peer owed one, and forgotten with the first that it gives.
#include "runtime/node/withheld_states.h"

#include <boost/test/unit_test.hpp>

#include "runtime/node/state_shares.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(withheld_states)

namespace {

NodeId peer(std::uint8_t number) {
  NodeId id;
  id.bytes[0] = number;
  return id;
}

StreamId stream(std::uint8_t number) {
  StreamId id;
  id.bytes[0] = number;
  return id;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_warning_is_due_once_after_some_in_a_row) {
  WithheldStates states;
  for (std::uint32_t i = 1; i <= 2 * WithheldStates::warned_at; ++i) {
    BOOST_TEST(states.ask(peer(1), stream(1), 12 * i));
    BOOST_TEST(states.withheld(peer(1)) == (i == WithheldStates::warned_at));
    BOOST_TEST(states.in_a_row(peer(1)) == i);
    BOOST_TEST((states.worst() == (i < WithheldStates::warned_at ? NodeId{} : peer(1))));
  }
  states.given(peer(1));
  BOOST_TEST(states.in_a_row(peer(1)) == 0u);
  BOOST_TEST(states.worst().is_zero());
}

// With another process the peer owes one at once, and the count goes on: to start again is no way out.
BOOST_AUTO_TEST_CASE(a_restart_keeps_the_count) {
  WithheldStates states;
  BOOST_TEST(states.ask(peer(1), stream(1), 40));
  states.withheld(peer(1));
  BOOST_TEST(!states.ask(peer(1), stream(1), 41));
  BOOST_TEST(states.ask(peer(1), stream(2), 2));
  states.withheld(peer(1));
  BOOST_TEST(states.in_a_row(peer(1)) == 2u);
  BOOST_TEST(states.in_a_row(peer(2)) == 0u);
}

// Whoever asks for every segment is refused nine of ten by an honest peer, which never counts.
BOOST_AUTO_TEST_CASE(what_an_honest_peer_refuses_is_not_owed) {
  for (const std::uint64_t every : {1, 2, 3, 7, 11, 40}) {
    WithheldStates states;
    StateShares shares(0.1);
    for (std::uint64_t segment = 1; segment < 2000; segment += every) {
      const bool owed = states.ask(peer(1), stream(1), segment);
      const bool given = shares.take(peer(2), segment + segment % 2);
      if (given && !owed) states.given_early(peer(1));
      BOOST_TEST((given || !owed), "segment " << segment << " of every " << every);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
