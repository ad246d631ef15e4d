// The pace of an origin: slower while its neighbours lag, faster when they have caught up.
#include "gossip/origin_pace.h"

#include <boost/test/unit_test.hpp>

using namespace rumor;
using namespace rumor::gossip;

namespace {

constexpr LinkId one{1}, two{2}, three{3};
constexpr TimePoint at(std::int64_t ms) { return TimePoint{Duration{ms * 1000}}; }

// Five updates a second, 1 to 100, ended at 20 s.
OriginPace after_twenty_seconds() {
  OriginPace pace;
  for (std::uint64_t seq = 1; seq <= 100; ++seq) pace.published(seq, at(static_cast<std::int64_t>(seq) * 200));
  return pace;
}

SeqRanges up_to(std::uint64_t seq) { return {{1, seq}}; }

}  // namespace

BOOST_AUTO_TEST_CASE(neighbours_that_keep_up_cost_no_pause) {
  OriginPace pace = after_twenty_seconds();
  pace.shown(one, up_to(99), at(20'000));
  pace.equal(two, at(20'000));
  BOOST_TEST((pace.interval() == Duration{0}));
  BOOST_TEST(pace.may_publish(at(20'000)));
}

BOOST_AUTO_TEST_CASE(lag_of_most_neighbours_makes_slower_and_the_end_of_it_faster) {
  OriginPace pace = after_twenty_seconds();
  for (const LinkId link : {one, two, three}) pace.equal(link, at(15'000));
  pace.shown(one, up_to(5), at(20'000));
  BOOST_TEST((pace.interval() == Duration{0}), "one slow neighbour of three is its own matter");
  pace.shown(two, up_to(5), at(20'000));
  BOOST_TEST((pace.interval() > 299ms && pace.interval() < 302ms));
  BOOST_TEST(!pace.may_publish(at(20'100)));
  BOOST_TEST(pace.may_publish(at(20'400)));
  pace.shown(two, up_to(5), at(22'000));  // too early for another change
  BOOST_TEST((pace.interval() < 302ms));
  pace.shown(two, up_to(5), at(26'000));
  BOOST_TEST((pace.interval() > 440ms && pace.interval() < 460ms));
  for (int round = 0; round < 400; ++round) pace.shown(two, up_to(5), at(32'000 + round * 5000));
  BOOST_TEST((pace.interval() == OriginPace::interval_max));
  pace.shown(one, up_to(100), at(3'000'000));
  pace.shown(two, up_to(100), at(3'000'000));
  BOOST_TEST((pace.interval() == OriginPace::interval_max * 4 / 5));
  for (int round = 1; round < 100; ++round) pace.equal(two, at(3'000'000 + round * 10'000));
  BOOST_TEST((pace.interval() == Duration{0}));
}

BOOST_AUTO_TEST_CASE(who_has_not_caught_up_yet_is_not_waited_for) {
  OriginPace pace = after_twenty_seconds();
  pace.shown(one, {}, at(20'000));
  BOOST_TEST((pace.interval() == Duration{0}));
  pace.equal(one, at(21'000));
  pace.published(101, at(22'000));
  pace.shown(one, up_to(100), at(33'000));
  BOOST_TEST((pace.interval() > Duration{0}));
  const Duration slow = pace.interval();
  pace.link_lost(one);
  pace.shown(two, up_to(3), at(60'000));  // a new one, far behind
  BOOST_TEST((pace.interval() == slow));
}
