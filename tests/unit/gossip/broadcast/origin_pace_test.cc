// The pace of an origin: slower while its neighbours lag, faster when they have caught up.
#include "gossip/broadcast/origin_pace.h"

#include <boost/test/unit_test.hpp>

using namespace rumor;
using namespace rumor::gossip;

namespace {

constexpr LinkId one{1}, two{2}, three{3};
constexpr TimePoint at(std::int64_t ms) { return TimePoint{Duration{ms * 1000}}; }

// Five updates a second, 1 to 100, ended at 20 s.
OriginPace after_twenty_seconds() {
  OriginPace pace;
  for (std::uint64_t seq = 1; seq <= 100; ++seq) pace.published(seq, 1000, 3, at(static_cast<std::int64_t>(seq) * 200));
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
  pace.published(101, 1000, 3, at(22'000));
  pace.shown(one, up_to(100), at(33'000));
  BOOST_TEST((pace.interval() > Duration{0}));
  const Duration slow = pace.interval();
  pace.link_lost(one);
  pace.shown(two, up_to(3), at(60'000));  // a new one, far behind
  BOOST_TEST((pace.interval() == slow));
}

namespace {

// Four times a second from `from` on, for so long; `wait(ms since then)`.
template <class Wait>
void tell_waits(OriginPace& pace, std::int64_t from, std::int64_t until, Duration others_gap, Wait wait) {
  for (std::int64_t now = from; now < until; now += 250) pace.waits(wait(now - from), others_gap, at(now));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_queue_that_grows_makes_slower_by_what_is_too_much) {
  OriginPace pace = after_twenty_seconds();
  tell_waits(pace, 20'000, 21'000, 1s, [](std::int64_t) { return Duration{0}; });
  BOOST_TEST((pace.interval() == Duration{0}));
  // Three come in where two go out: half a second of waiting more, each second. Long from 21.12 s on, standing
  // from 21.7 s. Besides, 375 ms are to leave within two seconds.
  std::int64_t now = 21'000;
  for (; now < 30'000 && pace.interval() == Duration{0}; now += 250)
    pace.waits(Duration{(now - 21'000) * 500}, 1s, at(now));
  BOOST_TEST(now >= 21'700);
  BOOST_TEST(now <= 22'500);
  BOOST_TEST((pace.interval() >= 300ms));  // of 200 ms, by a half and more
  BOOST_TEST((pace.interval() <= 350ms));
}

BOOST_AUTO_TEST_CASE(a_burst_or_a_queue_that_shrinks_makes_nobody_slower) {
  OriginPace pace = after_twenty_seconds();
  tell_waits(pace, 20'000, 40'000, 1s,
             [](std::int64_t ms) { return Duration{ms % 1000 < 250 ? 900'000 : 50'000}; });
  BOOST_TEST((pace.interval() == Duration{0}));
  tell_waits(pace, 40'000, 42'000, 10s, [](std::int64_t) { return Duration{3'000'000}; });
  const Duration interval = pace.interval();
  BOOST_TEST((interval > Duration{0}));
  tell_waits(pace, 42'000, 43'500, 10s, [](std::int64_t ms) { return Duration{3'000'000 - ms * 1900}; });
  BOOST_TEST((pace.interval() == interval));
}

BOOST_AUTO_TEST_CASE(a_queue_that_only_stands_is_drained) {
  OriginPace pace = after_twenty_seconds();
  tell_waits(pace, 20'000, 22'000, 10s, [](std::int64_t) { return Duration{150'000}; });
  const Duration interval = pace.interval();
  BOOST_TEST((interval > 200ms));
  tell_waits(pace, 22'000, 24'000, 10s, [](std::int64_t) { return Duration{150'000}; });
  BOOST_TEST((pace.interval() > interval));
}

// Five updates a second of so many bytes, 1 to 100, ended at 20 s, of an origin that follows density_factor().
static OriginPace thinning(std::size_t neighbours, std::size_t bytes = 1000,
                           GiveWay gives_way = GiveWay::thinner_updates) {
  OriginPace pace(gives_way);
  for (std::uint64_t seq = 1; seq <= 100; ++seq)
    pace.published(seq, bytes, neighbours, at(static_cast<std::int64_t>(seq) * 200));
  return pace;
}

BOOST_AUTO_TEST_CASE(a_queue_makes_updates_thinner_before_it_makes_them_rarer) {
  OriginPace pace = thinning(4);
  tell_waits(pace, 20'000, 24'000, 10s, [](std::int64_t) { return Duration{0}; });
  BOOST_TEST(pace.density_factor() == OriginPace::whole);
  tell_waits(pace, 24'000, 25'500, 10s, [](std::int64_t ms) { return Duration{ms * 500}; });
  BOOST_TEST(pace.density_factor() < OriginPace::whole * 3 / 4);
  BOOST_TEST(pace.density_factor() > OriginPace::thinnest);
  BOOST_TEST((pace.interval() == Duration{0}));
  tell_waits(pace, 25'500, 60'000, 10s, [](std::int64_t ms) { return Duration{750'000 + ms * 500}; });
  BOOST_TEST(pace.density_factor() == OriginPace::thinnest);
  BOOST_TEST((pace.interval() > 200ms));
  // All of it comes back: first the updates, then their entries.
  for (std::int64_t now = 60'000; pace.density_factor() == OriginPace::thinnest; now += 250) {
    BOOST_REQUIRE(now < 90'000);
    pace.waits(Duration{0}, 10s, at(now));
  }
  BOOST_TEST((pace.interval() == Duration{0}));
  tell_waits(pace, 90'000, 100'000, 10s, [](std::int64_t) { return Duration{0}; });
  BOOST_TEST(pace.density_factor() == OriginPace::whole);
}

// Its updates stay whole: steps wait until the queue is short, or until nobody has measured it for two seconds.
BOOST_AUTO_TEST_CASE(with_fewer_steps_none_begins_while_data_waits) {
  OriginPace pace = thinning(3, 1000, GiveWay::fewer_steps);
  tell_waits(pace, 20'000, 24'000, 10s, [](std::int64_t) { return Duration{0}; });
  BOOST_TEST(pace.may_publish(at(24'000)));
  for (std::int64_t now = 24'000; now < 60'000; now += 250) {
    pace.waits(OriginPace::wait_short, 10s, at(now));
    BOOST_TEST_REQUIRE(!pace.may_publish(at(now)));
  }
  BOOST_TEST(pace.density_factor() == OriginPace::whole);
  BOOST_TEST(!pace.may_publish(at(61'000)));
  BOOST_TEST(pace.may_publish(pace.publishes_from()));
  BOOST_TEST((pace.publishes_from() == at(59'750) + OriginPace::waits_forgotten_after));
  pace.waits(OriginPace::wait_short - 1ms, 10s, at(60'000));
  BOOST_TEST(pace.may_publish(at(60'000)));
}

BOOST_AUTO_TEST_CASE(with_many_neighbours_an_origin_begins_with_thin_updates) {
  for (const std::size_t neighbours : {3u, 4u}) {
    OriginPace pace = thinning(neighbours);
    BOOST_TEST(pace.density_factor() == OriginPace::cautious);
    pace.waits(Duration{0}, 10s, at(20'000));
    const bool many = neighbours >= OriginPace::many_neighbours;
    BOOST_TEST(pace.density_factor() == (many ? OriginPace::cautious * 5 / 4 : OriginPace::whole));
  }
}

BOOST_AUTO_TEST_CASE(small_updates_get_rarer_not_thinner) {
  OriginPace pace = thinning(4, OriginPace::thin_payload_max);
  BOOST_TEST(pace.density_factor() == OriginPace::whole);
  tell_waits(pace, 20'000, 24'000, 10s, [](std::int64_t) { return Duration{0}; });
  tell_waits(pace, 24'000, 25'500, 10s, [](std::int64_t ms) { return Duration{ms * 500}; });
  BOOST_TEST(pace.density_factor() == OriginPace::whole);
  BOOST_TEST((pace.interval() > 200ms));
}

BOOST_AUTO_TEST_CASE(nobody_is_made_much_slower_than_the_others_by_its_own_uplink) {
  OriginPace pace = after_twenty_seconds();
  tell_waits(pace, 20'000, 60'000, 100ms, [](std::int64_t ms) { return Duration{ms * 1000}; });
  BOOST_TEST((pace.interval() == 400ms));
  BOOST_TEST((after_twenty_seconds().interval() == Duration{0}));
  // And its own queue says nothing about what neighbours lack.
  for (const LinkId link : {one, two}) pace.equal(link, at(60'000));
  for (const LinkId link : {one, two}) pace.shown(link, up_to(5), at(66'000));
  const Duration by_lag = pace.interval();
  BOOST_TEST((by_lag > 590ms));
  tell_waits(pace, 66'000, 90'000, 100ms, [](std::int64_t) { return Duration{0}; });
  BOOST_TEST((pace.interval() == by_lag));
}

BOOST_AUTO_TEST_CASE(no_queue_makes_faster_again_until_nothing_is_held_back) {
  OriginPace pace = after_twenty_seconds();
  tell_waits(pace, 20'000, 60'000, 10s, [](std::int64_t ms) { return Duration{ms * 1000}; });
  const Duration slow = pace.interval();
  BOOST_TEST((slow > 1s));
  tell_waits(pace, 60'000, 61'000, 10s, [](std::int64_t) { return Duration{150'000}; });
  BOOST_TEST((pace.interval() == slow));
  tell_waits(pace, 61'000, 100'000, 10s, [](std::int64_t) { return Duration{0}; });
  BOOST_TEST((pace.interval() == Duration{0}));
}

BOOST_AUTO_TEST_CASE(updates_go_out_once_an_interval_in_the_mean_whatever_a_step_takes) {
  OriginPace pace = after_twenty_seconds();
  tell_waits(pace, 20'000, 60'000, 75ms, [](std::int64_t ms) { return Duration{ms * 1000}; });
  BOOST_TEST((pace.interval() == 300ms));
  std::uint64_t sent = 100;
  for (std::int64_t now = 60'000; now < 120'000; now += 200)  // steps of 200 ms
    if (pace.may_publish(at(now))) pace.published(++sent, 1000, 3, at(now));
  BOOST_TEST(sent >= 300u);
  BOOST_TEST(sent <= 302u);
}
