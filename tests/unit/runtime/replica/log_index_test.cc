#include <boost/test/unit_test.hpp>

#include <map>

#include "runtime/base/prng.h"
#include "runtime/replica/log_index.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

BOOST_AUTO_TEST_CASE(an_index_agrees_with_a_map_whatever_is_added_and_removed) {
  Prng prng(1);
  LogIndex index;
  std::map<UpdateKey, LogIndex::Order> by_key;
  std::map<LogIndex::Order, UpdateKey> by_order;
  for (int turn = 0; turn < 20'000; ++turn) {
    const UpdateKey key{test::stream(static_cast<std::uint8_t>(1 + prng.below(3))), 1 + prng.below(500)};
    if (const auto at = by_key.find(key); at != by_key.end()) {
      BOOST_TEST_REQUIRE((index.order_of(key) == at->second));
      index.remove(at->second);
      by_order.erase(at->second);
      by_key.erase(at);
    } else {
      BOOST_TEST_REQUIRE(!index.order_of(key).has_value());
      const auto segment = static_cast<std::uint32_t>(turn);
      const LogIndex::Order order = index.add(key, {TimePoint{turn * 1s}, 5, segment, 7});
      by_key[key] = order;
      by_order[order] = key;
      const LogIndex::Place place = index.place_of(order);
      BOOST_TEST_REQUIRE((place.at == TimePoint{turn * 1s} && place.segment == segment));
      BOOST_TEST_REQUIRE((place.bytes == 5u && place.offset == 7u));
    }
    BOOST_TEST_REQUIRE(index.size() == by_key.size());
    if (by_order.empty()) continue;
    BOOST_TEST_REQUIRE(index.oldest() == by_order.begin()->first);
    BOOST_TEST_REQUIRE((index.key_of(index.oldest()) == by_order.begin()->second));
  }
  auto expected = by_order.begin();
  index.each([&](LogIndex::Order order) { BOOST_TEST_REQUIRE(order == (expected++)->first); });
  BOOST_TEST((expected == by_order.end()));
  for (const auto& [key, order] : by_key) index.remove(order);
  BOOST_TEST(index.empty());
  BOOST_TEST(index.memory_bytes() == 0u);
}
