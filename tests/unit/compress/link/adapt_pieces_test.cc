// The pieces of the adaptive coder, each alone: shares of cells, of counts and of signs, and the coder of
// events.
#include <boost/test/unit_test.hpp>

#include "compress/link/adapt_coder.h"
#include "compress/link/adapt_columns.h"
#include "compress/link/adapt_learning.h"
#include "compress/link/adapt_member.h"
#include "runtime/base/prng.h"

using namespace rumor;
using namespace rumor::compress;

// BOOST_TEST_REQUIRE for loops of millions, where it would take longer than all that is tested.
#define MUST(condition)                       \
  do {                                        \
    if (!(condition)) BOOST_FAIL(#condition); \
  } while (false)

BOOST_AUTO_TEST_SUITE(adapt_pieces)

namespace {

// The shares of all cells from `first` on fill the scale, and each is found by its slots.
template <class Next>
void check_shares(const Next& next, std::uint32_t first) {
  MUST(next.start(first) == 0u);
  for (std::uint32_t cell = first; cell < next.end(); ++cell) {
    const std::uint32_t from = next.start(cell), to = next.start(cell + 1);
    MUST(to >= from + 2);
    if (cell % 7 != 0 && cell + 1 != next.end()) continue;
    for (std::uint32_t slot : {from, from + (to - from) / 2, to - 1}) {
      const FoundCell found = next.find(slot);
      MUST(found.cell == cell);
      MUST(found.inside == slot - from);
      MUST(found.size == to - from);
    }
  }
  MUST(next.start(next.end()) == scale);
}

// Some step in these cells.
template <class Cells>
void check_steps(Prng& prng, const Cells& cells) {
  const auto first = static_cast<std::uint32_t>(prng.below(cells.count));
  const auto left = static_cast<std::uint32_t>(
      1 + prng.below(std::min(cells.count - first, prng.chance(1, 2) ? 16384u : 12u)));
  const NextMember next(cells, first, left);
  MUST(next.end() == cells.count - left + 1);
  check_shares(next, first);
  const LastMember last(cells, first);
  MUST(last.end() == cells.count);
  check_shares(last, first);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_cell_has_a_share_and_all_shares_fill_the_scale) {
  Prng prng(1);
  for (int i = 0; i < 300; ++i) {
    const auto count = static_cast<std::uint32_t>(1 + prng.below(i % 10 == 0 ? cells_max : 300));
    check_steps(prng, AlikeCells{.count = count});
    ListedWeights listed;
    const std::uint64_t most = i % 3 == 0 ? 2 : 5000;
    listed.set(count, [&](std::uint32_t) { return 1 + static_cast<std::uint32_t>(prng.below(most)); });
    check_steps(prng, listed.cells());
  }
}

// Columns that learn: whichever way the weights are kept, they are those of the text, and all are found.
BOOST_AUTO_TEST_CASE(columns_weigh_what_the_text_says) {
  Prng prng(5);
  for (int i = 0; i < 60; ++i) {
    const auto count = static_cast<std::uint32_t>(2 + prng.below(i % 10 == 0 ? 3000 : 200));
    std::vector<std::uint32_t> prior(count), hits(count, 0), known(count, 0);
    for (std::uint32_t& value : prior) value = static_cast<std::uint32_t>(prng.below(600));
    const bool predicted = i % 2 == 0;
    Columns columns;
    columns.begin(count, 4000, predicted ? prior.data() : nullptr, nullptr);
    std::uint32_t total = 0, made = 0;
    for (int row = 0; row < 900; ++row) {
      const auto column = static_cast<std::uint32_t>(prng.below(count) * prng.below(count) / count);
      columns.row().hit(column, 0);
      ++hits[column], ++total;
      const std::uint32_t due = made + std::max(64u, made >> 4);
      MUST(columns.until_due() == due - total + 1);
      columns.grow(1);
      if (total < due) continue;
      made = total;
      known = hits;
      columns.with_cells([&](const auto& cells) {
        check_steps(prng, cells);
        const std::uint32_t plain = cells.before(1) - 64 * known[0];  // of the first column alone
        std::uint64_t sum = 0;
        for (std::uint32_t c = 0; c < count && !predicted; sum += plain + 64 * known[c++])
          MUST(cells.before(c) == sum);
        MUST((predicted || cells.total() == sum));
        MUST(cells.mean == cells.total() / count);
        return true;
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(counts_keep_every_symbol_possible) {
  Prng prng(2);
  Counts counts;
  for (int i = 0; i < 20000; ++i) {
    const auto context = static_cast<std::uint32_t>(prng.below(Counts::contexts));
    counts.learn(context, i % 1000 < 500 ? 3 : static_cast<std::uint32_t>(prng.below(Counts::symbols)));
    MUST(counts.start(context, 0) == 0u);
    MUST(counts.start(context, Counts::symbols) == 1u << Counts::symbol_bits);
    for (std::uint32_t symbol = 0; symbol < Counts::symbols; ++symbol) {
      const std::uint32_t from = counts.start(context, symbol), to = counts.start(context, symbol + 1);
      MUST(from < to);
      MUST(counts.find(context, from) == symbol);
      MUST(counts.find(context, to - 1) == symbol);
    }
  }
}

BOOST_AUTO_TEST_CASE(signs_keep_both_possible) {
  Signs signs;
  for (int i = 0; i < 100000; ++i) {
    signs.learn(3, sign_mask(i < 50000));
    for (std::uint32_t size : {2u, 3u, 1000u, scale}) {
      MUST(signs.share(3, size) >= 1u);
      MUST(signs.share(3, size) < size);
    }
  }
}

namespace {

struct Event {
  Lane lane;
  std::uint32_t start, size;
};

bool read_back(StateReader& reader, const std::vector<Event>& events, std::size_t join_at) {
  for (std::size_t i = 0; i <= events.size(); ++i) {
    if (i == join_at && !reader.join()) return false;
    if (i == events.size()) break;
    const std::uint32_t inside = reader.slot(events[i].lane) - events[i].start;
    if (inside >= events[i].size) return false;
    reader.take(events[i].lane, inside, events[i].size);
  }
  return true;
}

}  // namespace

// In one state, and in two that join somewhere: also where next to nothing comes after that.
BOOST_AUTO_TEST_CASE(events_come_back_in_the_order_they_were_added) {
  Prng prng(3);
  for (int i = 0; i < 900; ++i) {
    std::vector<Event> events(prng.below(200));
    const bool apart = i % 3 != 0;
    const std::size_t join_at = apart ? prng.below(events.size() + 1) : events.size() + 1;
    EventList list(events.size());
    for (std::size_t e = 0; e < events.size(); ++e) {
      if (e == join_at) list.join();
      Event& event = events[e];
      event.lane = prng.chance(1, 2) ? Lane::far : Lane::near;
      event.size = 1 + static_cast<std::uint32_t>(prng.below(std::uint64_t{1} << prng.below(28)));
      event.start = static_cast<std::uint32_t>(prng.below(scale - event.size + 1));
      list.add(event.lane, event.start, event.size);
    }
    if (join_at == events.size()) list.join();
    const auto number = static_cast<std::uint32_t>(prng.below(50));
    list.end(number);
    Bytes body;
    list.write(body);
    const std::size_t size = body.size();
    body.resize(size + StateReader::slack);
    StateReader reader(body.data(), size);
    MUST(reader.valid());
    MUST((!apart || reader.part()));
    MUST(read_back(reader, events, join_at));
    std::uint32_t read = 0;
    MUST(reader.end(50, read));
    MUST(read == number);
  }
}

BOOST_AUTO_TEST_SUITE_END()
