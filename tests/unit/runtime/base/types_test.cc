#include "runtime/base/types.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <type_traits>

#include "runtime/base/time.h"

namespace rumor {
namespace {

StreamId stream_of(std::uint8_t first) {
  StreamId id;
  id.bytes.front() = first;
  return id;
}

BOOST_AUTO_TEST_SUITE(types)

BOOST_AUTO_TEST_CASE(ids_of_different_kinds_do_not_mix) {
  static_assert(!std::is_convertible_v<StreamId, RunId> && !std::is_constructible_v<RunId, StreamId>);
  static_assert(!std::is_same_v<NodeId, Hash256>);
  static_assert(sizeof(StreamId) == 16 && sizeof(NodeId) == 32);
  BOOST_TEST(StreamId{}.is_zero());
}

BOOST_AUTO_TEST_CASE(ids_print_as_hex_and_read_back) {
  const Bytes bytes = {0x00, 0x01, 0x0f, 0x10, 0x7f, 0x80, 0xab, 0xff, 0, 0, 0, 0, 0, 0, 0, 0x2a};
  const StreamId id = StreamId::from(bytes);
  BOOST_TEST(id.hex() == "00010f107f80abff000000000000002a");
  BOOST_TEST(id.brief() == "00010f10");
  BOOST_TEST(!id.is_zero());
  BOOST_TEST((StreamId::from(id.view()) == id));
  BOOST_TEST(to_hex({}).empty());
}

// At every place, and the first that differs decides.
BOOST_AUTO_TEST_CASE(ids_sort_as_their_bytes) {
  NodeId low, high;
  for (std::size_t place = 0; place < NodeId::size; ++place) {
    low.bytes[place] = 0x7f;
    high.bytes[place] = 0x80;
    if (place + 1 < NodeId::size) low.bytes[place + 1] = 0xff;
    BOOST_TEST((low < high && high > low && low != high));
    low.bytes[place] = high.bytes[place];
    BOOST_TEST((place + 1 < NodeId::size ? low > high : low == high && (low <=> high) == 0));
  }
}

BOOST_AUTO_TEST_CASE(update_keys_sort_by_stream_then_number) {
  const std::set<UpdateKey> keys = {
      {stream_of(2), 1}, {stream_of(1), 10}, {stream_of(1), 2}, {stream_of(1), 2}};
  std::string order;
  for (const UpdateKey& key : keys)
    order += key.stream.brief().substr(1, 1) + ":" + std::to_string(key.seq) + " ";
  BOOST_TEST(order == "1:2 1:10 2:1 ");
}

BOOST_AUTO_TEST_CASE(durations_count_microseconds) {
  BOOST_TEST((from_seconds(1.5) == Duration(1'500'000)));
  BOOST_TEST(to_seconds(250ms) == 0.25);
  BOOST_TEST((TimePoint{} + 1s < never));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace rumor
