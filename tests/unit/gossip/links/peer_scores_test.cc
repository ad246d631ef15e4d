#include "gossip/links/peer_scores.h"

#include <boost/test/unit_test.hpp>

namespace rumor::gossip {

namespace {

NodeId node(std::uint8_t number, std::uint8_t more = 0) {
  NodeId id;
  id.bytes.fill(number);
  id.bytes[0] = more;
  return id;
}

TimePoint at(Duration d) {
  return TimePoint{d};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(peer_scores)

BOOST_AUTO_TEST_CASE(a_forger_is_banned_for_an_hour) {
  PeerScores scores;
  BOOST_TEST(!scores.is_banned(node(1), at(0s)));
  scores.has_forged(node(1), at(5s));
  BOOST_TEST(scores.is_banned(node(1), at(5s)));
  BOOST_TEST(scores.is_banned(node(1), at(1h)));
  BOOST_TEST(!scores.is_banned(node(1), at(1h + 5s)));
  BOOST_TEST(!scores.is_banned(node(2), at(5s)));
}

BOOST_AUTO_TEST_CASE(promises_count_until_once_is_too_often) {
  PeerScores scores;
  for (int i = 0; i < 30; ++i) {
    BOOST_TEST(scores.may_provide(node(1)) == (i < 10));
    BOOST_TEST(!scores.has_broken_promise(node(1), at(1s)));
  }
  BOOST_TEST(scores.has_broken_promise(node(1), at(1s)));
  BOOST_TEST(scores.is_banned(node(1), at(9min)));
  BOOST_TEST(!scores.is_banned(node(1), at(11min)));
}

BOOST_AUTO_TEST_CASE(deliveries_make_up_for_them_within_bounds) {
  PeerScores scores;
  for (int i = 0; i < 10'000; ++i) scores.has_delivered(node(1), at(1s));
  for (int i = 0; i < 40; ++i)
    BOOST_TEST(!scores.has_broken_promise(node(1), at(1s)));  // 10 points ahead, no more
  BOOST_TEST(scores.has_broken_promise(node(1), at(1s)));
}

BOOST_AUTO_TEST_CASE(it_fades) {
  PeerScores scores;
  for (int i = 0; i < 20; ++i) scores.has_broken_promise(node(1), at(0s));
  BOOST_TEST(!scores.may_provide(node(1)));
  scores.has_delivered(node(1), at(90min));
  BOOST_TEST(scores.may_provide(node(1)));  // 20 * 0.99^90 is under ten
}

BOOST_AUTO_TEST_CASE(a_crowd_does_not_push_out_the_banned) {
  PeerScores scores;
  scores.has_forged(node(1), at(0s));
  for (std::size_t i = 0; i < 2 * PeerScores::scores_max; ++i)
    scores.has_delivered(node(static_cast<std::uint8_t>(2 + i / 256), static_cast<std::uint8_t>(i)), at(1s));
  BOOST_TEST(scores.is_banned(node(1), at(1min)));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip
