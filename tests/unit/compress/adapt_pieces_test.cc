// The pieces of the adaptive coder, each alone: shares of cells, of counts and of signs, and the coder of
// events.
#include <boost/test/unit_test.hpp>

#include "compress/adapt_cells.h"
#include "compress/adapt_coder.h"
#include "compress/adapt_learning.h"
#include "runtime/base/prng.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(adapt_pieces)

BOOST_AUTO_TEST_CASE(every_cell_has_a_share_and_all_shares_fill_the_scale) {
  Prng prng(1);
  for (int i = 0; i < 300; ++i) {
    const auto count = static_cast<std::uint32_t>(1 + prng.below(i % 10 == 0 ? cells_max : 300));
    std::vector<std::uint32_t> weights(count);
    for (std::uint32_t& weight : weights)
      weight = 1 + static_cast<std::uint32_t>(prng.below(i % 3 == 0 ? 2 : 5000));
    Cells cells;
    cells.reset(count);
    if (i % 4 != 0) cells.set(weights.data(), count, true);
    const auto first = static_cast<std::uint32_t>(prng.below(count));
    const auto left =
        static_cast<std::uint32_t>(1 + prng.below(std::min(count - first, i % 2 == 0 ? 16384u : 12u)));
    const NextMember next(cells.view(), first, left);
    BOOST_TEST_REQUIRE(next.start(first) == 0u);
    BOOST_TEST_REQUIRE(next.end() == count - left + 1);
    for (std::uint32_t cell = first; cell < next.end(); ++cell) {
      const std::uint32_t from = next.start(cell), to = next.start(cell + 1);
      BOOST_TEST_REQUIRE(to >= from + 2);
      if (cell % 7 != 0 && cell + 1 != next.end()) continue;
      for (std::uint32_t slot : {from, from + (to - from) / 2, to - 1}) {
        const NextMember::Found found = next.find(slot);
        BOOST_TEST_REQUIRE(found.cell == cell);
        BOOST_TEST_REQUIRE(found.from == from);
        BOOST_TEST_REQUIRE(found.to == to);
      }
    }
    BOOST_TEST_REQUIRE(next.start(next.end()) == scale);
  }
}

BOOST_AUTO_TEST_CASE(counts_keep_every_symbol_possible) {
  Prng prng(2);
  Counts counts;
  for (int i = 0; i < 20000; ++i) {
    const auto context = static_cast<std::uint32_t>(prng.below(Counts::contexts));
    counts.learn(context, i % 1000 < 500 ? 3 : static_cast<std::uint32_t>(prng.below(Counts::symbols)));
    BOOST_TEST_REQUIRE(counts.start(context, 0) == 0u);
    BOOST_TEST_REQUIRE(counts.start(context, Counts::symbols) == 1u << Counts::symbol_bits);
    for (std::uint32_t symbol = 0; symbol < Counts::symbols; ++symbol) {
      const std::uint32_t from = counts.start(context, symbol), to = counts.start(context, symbol + 1);
      BOOST_TEST_REQUIRE(from < to);
      BOOST_TEST_REQUIRE(counts.find(context, from) == symbol);
      BOOST_TEST_REQUIRE(counts.find(context, to - 1) == symbol);
    }
  }
}

BOOST_AUTO_TEST_CASE(signs_keep_both_possible) {
  Signs signs;
  for (int i = 0; i < 100000; ++i) {
    signs.learn(3, i < 50000);
    for (std::uint32_t size : {2u, 3u, 1000u, scale}) {
      BOOST_TEST_REQUIRE(signs.share(3, size) >= 1u);
      BOOST_TEST_REQUIRE(signs.share(3, size) < size);
    }
  }
}

BOOST_AUTO_TEST_CASE(events_come_back_in_the_order_they_were_added) {
  Prng prng(3);
  for (int i = 0; i < 300; ++i) {
    struct Event {
      std::uint32_t start, size;
    };
    std::vector<Event> events(prng.below(200));
    EventList list(events.size());
    for (Event& event : events) {
      event.size = 1 + static_cast<std::uint32_t>(prng.below(std::uint64_t{1} << prng.below(28)));
      event.start = static_cast<std::uint32_t>(prng.below(scale - event.size + 1));
      list.add(event.start, event.size);
    }
    const auto number = static_cast<std::uint32_t>(prng.below(50));
    list.end(number);
    Bytes body;
    list.write(body);
    StateReader reader(body);
    BOOST_TEST_REQUIRE(reader.valid());
    for (const Event& event : events) {
      BOOST_TEST_REQUIRE(reader.slot() - event.start < event.size);
      reader.take(event.start, event.size);
    }
    std::uint32_t read = 0;
    BOOST_TEST_REQUIRE(reader.end(50, read));
    BOOST_TEST_REQUIRE(read == number);
  }
}

BOOST_AUTO_TEST_SUITE_END()
