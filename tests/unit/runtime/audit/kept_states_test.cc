// Kept states: the last three, with roots that fit their pieces.
#include <boost/test/unit_test.hpp>

#include "runtime/audit/kept_states.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(kept_states)

BOOST_AUTO_TEST_CASE(the_last_three_are_kept) {
  audit::KeptStates states;
  Serial serial;
  std::shared_ptr<const audit::KeptState> handed_out;
  for (std::uint64_t first = 1; first <= 65; first += 16) {
    states.keep(first, Bytes(1000, static_cast<std::uint8_t>(first)), serial);
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

BOOST_AUTO_TEST_CASE(a_root_is_over_the_size_and_the_hashes_of_all_pieces) {
  Serial serial;
  Bytes state(2 * gossip::root_piece_bytes + 5);
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = static_cast<std::uint8_t>(i * i >> 7);
  audit::KeptStates states;
  const audit::KeptState& kept = states.keep(1, state, serial);
  BOOST_REQUIRE(kept.hashes.size() == 3u);
  BOOST_TEST(gossip::root_pieces(state.size()) == 3u);
  BOOST_TEST(gossip::root_piece(state, 2).size() == 5u);
  for (std::uint64_t i = 0; i < 3; ++i) BOOST_TEST((kept.hashes[i] == sha256(gossip::root_piece(state, i))));
  BOOST_TEST((kept.root == gossip::piece_root(state.size(), kept.hashes)));
  BOOST_TEST((kept.root != gossip::piece_root(state.size() - 1, kept.hashes)));
  BOOST_TEST((kept.root != gossip::piece_root(state.size(), std::span(kept.hashes).first(2))));
}

BOOST_AUTO_TEST_SUITE_END()
