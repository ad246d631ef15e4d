#include <boost/test/unit_test.hpp>

#include "runtime/update_log.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

BOOST_AUTO_TEST_CASE(the_oldest_go_first_and_the_bound_holds) {
  const ParamLayout layout = test::small_layout();
  Prng prng(4);
  UpdateLog log(20'000);
  for (std::uint64_t seq = 1; seq <= 500; ++seq)
    log.append(test::stored(layout, test::random_update(prng, layout.params(), 40), test::stream(1), seq));
  BOOST_TEST(log.bytes() <= 20'000u);
  BOOST_TEST(!log.find({test::stream(1), 1}).has_value());
  BOOST_REQUIRE(log.find({test::stream(1), 500}).has_value());
  BOOST_TEST(log.find({test::stream(1), 500})->header.key.seq == 500u);
  BOOST_TEST(log.all().back().header.key.seq == 500u);
  BOOST_TEST(log.all().size() > 10u);
}

BOOST_AUTO_TEST_CASE(the_tail_is_the_newest_in_order_of_arrival) {
  const ParamLayout layout = test::small_layout();
  Prng prng(4);
  UpdateLog log(1 << 20);
  for (std::uint64_t seq = 1; seq <= 20; ++seq)
    log.append(
        test::stored(layout, test::random_update(prng, layout.params(), 0), test::stream(1), 21 - seq));
  const auto tail = log.tail(1000);
  BOOST_REQUIRE(tail.size() >= 2u);
  BOOST_TEST(tail.size() < 20u);
  BOOST_TEST(tail.back().header.key.seq == 1u);
  BOOST_TEST(tail.front().header.key.seq == tail.size());
}
