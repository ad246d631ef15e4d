// Adaptive segments: what comes back, what it costs, which bytes it is, and what is refused.
#include "compress/link/adapt.h"

#include <boost/test/unit_test.hpp>

#include "compress/link/adapt_tables.h"
#include "tests/unit/compress/link/adapt_entries.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(adapt)

BOOST_AUTO_TEST_CASE(any_shape_comes_back) {
  Prng prng(1);
  for (int i = 0; i < 1500; ++i) check_round_trip(any_entries(prng, i % 10 == 0 ? 3000 : 200));
}

BOOST_AUTO_TEST_CASE(every_count_of_small_shapes_comes_back) {
  Prng prng(2);
  for (std::uint32_t rows = 1; rows <= 5; ++rows) {
    for (std::uint32_t columns = 1; columns <= 5; ++columns) {
      for (std::uint32_t count = 1; count <= rows * columns; ++count) {
        Entries entries;
        const Part part{.columns = columns, .end = rows * columns};
        entries.add(part, even(prng, 0, part.end, count), prng);
        check_round_trip(entries);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(clusters_come_back_and_take_less) {
  Prng prng(3);
  for (std::uint32_t count : {50u, 500u, 5000u, 16000u}) {
    Entries entries;
    entries.add({.columns = 800, .end = 700 * 800}, clustered(prng, 700, 800, count), prng);
    check_round_trip(entries);
    if (count >= 500)
      BOOST_TEST(static_cast<double>(8 * encoded(entries).size()) < 0.9 * even_bits(700 * 800, count));
  }
}

BOOST_AUTO_TEST_CASE(independent_positions_take_next_to_nothing_more) {
  Prng prng(4);
  for (std::uint32_t columns : {1u, 64u, 1000u}) {
    Entries entries;
    entries.parts.push_back({.columns = columns, .end = 1600000, .count = 16000});
    for (std::uint32_t position : even(prng, 0, 1600000, 16000)) {
      entries.positions.push_back(position);
      entries.negative.push_back(static_cast<std::uint8_t>(prng.below(2)));
    }
    const double bits = static_cast<double>(8 * encoded(entries).size());
    BOOST_TEST(bits < 1.005 * even_bits(1600000, 16000));
  }
}

BOOST_AUTO_TEST_CASE(extremes_come_back) {
  Prng prng(5);
  constexpr std::uint32_t most = 0x7fffffff;
  for (std::uint32_t columns : {1u, 2u, 1000u, cells_max, cells_max + 1, 1u << 20, most}) {
    for (std::uint32_t count : {1u, 2u, 40u, 16384u}) {
      Entries entries;
      const Part part{.columns = columns, .end = most};
      std::set<std::uint32_t> chosen = even(prng, 0, most, count);
      if (count > 1) chosen.erase(chosen.begin());
      if (count > 1) chosen.insert(most - 1);
      entries.add(part, chosen, prng);
      check_round_trip(entries);
    }
  }
  Entries packed;  // all in one place
  std::set<std::uint32_t> last;
  for (std::uint32_t i = 0; i < 16384; ++i) last.insert(most - 1 - i);
  packed.add({.columns = 3, .end = most}, last, prng);
  check_round_trip(packed);
}

BOOST_AUTO_TEST_CASE(few_rows_with_many_entries_come_back) {
  Prng prng(6);
  for (std::uint32_t rows : {2u, 3u, 40u}) {
    Entries entries;
    std::set<std::uint32_t> chosen = even(prng, 0, 20000, 16300);
    for (std::uint32_t row = 1; row < rows; ++row) chosen.insert(row * 20000 + 17);
    entries.add({.columns = 20000, .end = rows * 20000}, chosen, prng);
    check_round_trip(entries);
  }
}

// Fixed by hand from what the fourth version wrote; compress/ADAPT.md walks through the first of them.
BOOST_AUTO_TEST_CASE(bytes_stay_what_they_are) {
  const Entries one{
      .parts = {{.columns = 4, .end = 16, .count = 3}}, .positions = {3, 9, 10}, .negative = {0, 1, 1}};
  BOOST_TEST(to_hex(encoded(one)) == "9a732ead04");
  const Entries single{.parts = {{.columns = 1, .end = 9, .count = 1}}, .positions = {5}, .negative = {1}};
  BOOST_TEST(to_hex(encoded(single)) == "0b");
  Entries more;
  for (std::uint32_t i = 0; i < 300; ++i) {
    more.positions.push_back(i * i / 3 * 7 + i % 7);
    more.negative.push_back(static_cast<std::uint8_t>(i % 5 == 0 ? 1 : 0));
  }
  more.parts = {{.columns = 320, .end = 640 * 1000, .count = 300}};
  const Bytes body = encoded(more);
  BOOST_TEST(body.size() == 488u);
  BOOST_TEST(to_hex(BytesView(body).first(16)) == "f740e143b1db9a4e354173f04d0bfd1f");
  BOOST_TEST(to_hex(BytesView(body).last(16)) == "8fbe11f0ae443e18265d7194c7a68fec");
}

// The same for LINK, with a history of three updates.
BOOST_AUTO_TEST_CASE(bytes_with_a_history_stay_what_they_are) {
  const ParamLayout layout = ParamLayout::create({{.name = "a", .shape = {60, 40}}}).value();
  LinkHistory history(layout);
  Entries entries{.parts = {{.columns = 40, .end = 2400, .count = 120}}};
  for (std::uint32_t step = 0; step < 4; ++step) {
    entries.positions.clear();
    entries.negative.clear();
    for (std::uint32_t i = 0; i < 120; ++i) {
      entries.positions.push_back(20 * i + (i * i + step) % 20);
      entries.negative.push_back(static_cast<std::uint8_t>(i % 3 == 0 ? 1 : 0));
    }
    if (step < 3) history.remember(entries.positions, entries.negative);
  }
  check_round_trip(entries, &history);
  const Bytes body = encoded(entries, &history);
  BOOST_TEST(body.size() == 76u);
  BOOST_TEST(to_hex(BytesView(body).first(16)) == "50d08154f7019c0c846b5541c6ccf425");
  BOOST_TEST(to_hex(BytesView(body).last(16)) == "436d95ace71b4e1d95413bece85dcd83");
}

BOOST_AUTO_TEST_CASE(no_entries_are_no_bytes) {
  BOOST_TEST(encoded({}).empty());
  BOOST_TEST(adapt_decode({}, {}, nullptr, nullptr, nullptr));
  BOOST_TEST(!adapt_decode({}, Bytes{0}, nullptr, nullptr, nullptr));
}

BOOST_AUTO_TEST_CASE(appends_to_what_is_there) {
  Prng prng(7);
  const Entries entries = any_entries(prng, 100);
  Bytes out{1, 2, 3};
  adapt_encode(entries.parts, entries.positions, entries.negative, nullptr, out);
  const Bytes body = encoded(entries);
  BOOST_TEST_REQUIRE(out.size() == body.size() + 3);
  BOOST_TEST(std::equal(body.begin(), body.end(), out.begin() + 3));
}

BOOST_AUTO_TEST_CASE(damaged_bytes_are_refused_or_are_other_entries) {
  Prng prng(8);
  int read = 0, refused = 0;
  for (int i = 0; i < 400; ++i) {
    const Entries entries = any_entries(prng, 120);
    const Bytes body = encoded(entries);
    BOOST_TEST_REQUIRE(accepted(entries, body));
    for (int change = 0; change < 12; ++change) {
      Bytes damaged = body;
      const std::uint64_t kind = prng.below(4);
      if (kind == 0 && !damaged.empty()) damaged.resize(prng.below(damaged.size()));
      if (kind == 1) damaged.push_back(static_cast<std::uint8_t>(prng.below(256)));
      if (kind == 2 && !damaged.empty())
        damaged[prng.below(damaged.size())] ^= static_cast<std::uint8_t>(1u << prng.below(8));
      if (kind == 3)
        for (std::uint8_t& byte : damaged) byte = static_cast<std::uint8_t>(prng.below(256));
      ++(accepted(entries, damaged) ? read : refused);
    }
  }
  BOOST_TEST(read > 80);
  BOOST_TEST(refused > 1000);
}

BOOST_AUTO_TEST_CASE(every_short_body_is_refused_or_is_the_one_encoding) {
  const Entries like{
      .parts = {{.columns = 3, .end = 9, .count = 2}}, .positions = {0, 0}, .negative = {0, 0}};
  int read = 0;
  for (std::uint32_t value = 0; value < 1u << 16; ++value) {
    const Bytes two{static_cast<std::uint8_t>(value), static_cast<std::uint8_t>(value >> 8)};
    read += accepted(like, two) ? 1 : 0;
  }
  for (std::uint32_t value = 0; value < 256; ++value)
    read += accepted(like, Bytes{static_cast<std::uint8_t>(value)}) ? 1 : 0;
  BOOST_TEST(read > 0);
}

BOOST_AUTO_TEST_CASE(bytes_with_other_parts_are_harmless) {
  Prng prng(9);
  for (int i = 0; i < 500; ++i) {
    const Entries wrote = any_entries(prng, 150);
    accepted(any_entries(prng, 150), encoded(wrote));
  }
}

BOOST_AUTO_TEST_SUITE_END()
