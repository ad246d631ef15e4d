// Entries of a segment from a seed, and what every test of ADAPT and LINK asks of a body.
#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "compress/link/adapt.h"
#include "runtime/base/prng.h"

namespace rumor::compress {

struct Entries {
  std::vector<Part> parts;
  std::vector<std::uint32_t> positions;
  Bytes negative;

  void add(const Part& part, const std::set<std::uint32_t>& chosen, Prng& prng) {
    parts.push_back(part);
    parts.back().count = static_cast<std::uint32_t>(chosen.size());
    positions.insert(positions.end(), chosen.begin(), chosen.end());
    for (std::size_t i = 0; i < chosen.size(); ++i)
      negative.push_back(static_cast<std::uint8_t>(prng.chance(1, 3) ? 1 : 0));
  }
};

inline Bytes encoded(const Entries& entries, const LinkHistory* history = nullptr) {
  Bytes body;
  adapt_encode(entries.parts, entries.positions, entries.negative, history, body);
  return body;
}

// Whether the body is read, and is then what the encoder writes for what was read.
inline bool accepted(const Entries& like, BytesView body, const LinkHistory* history = nullptr) {
  Entries read{.parts = like.parts,
               .positions = std::vector<std::uint32_t>(like.positions.size()),
               .negative = Bytes(like.positions.size())};
  if (!adapt_decode(read.parts, body, history, read.positions.data(), read.negative.data())) return false;
  std::size_t at = 0;
  for (const Part& part : read.parts) {
    for (std::uint32_t i = 0; i < part.count; ++i, ++at) {
      BOOST_TEST_REQUIRE(read.positions[at] >= part.begin);
      BOOST_TEST_REQUIRE(read.positions[at] < part.end);
      if (i > 0) BOOST_TEST_REQUIRE(read.positions[at] > read.positions[at - 1]);
      BOOST_TEST_REQUIRE(read.negative[at] <= 1);
    }
  }
  const Bytes again = encoded(read, history);
  BOOST_TEST_REQUIRE((again == Bytes(body.begin(), body.end())));
  return true;
}

inline void check_round_trip(const Entries& entries, const LinkHistory* history = nullptr) {
  const Bytes body = encoded(entries, history);
  std::vector<std::uint32_t> positions(entries.positions.size());
  Bytes negative(entries.positions.size());
  BOOST_TEST_REQUIRE(adapt_decode(entries.parts, body, history, positions.data(), negative.data()));
  BOOST_TEST_REQUIRE((positions == entries.positions));
  BOOST_TEST_REQUIRE((negative == entries.negative));
}

// `count` of [begin, end), evenly.
inline std::set<std::uint32_t> even(Prng& prng, std::uint32_t begin, std::uint32_t end, std::uint32_t count) {
  std::set<std::uint32_t> chosen;
  for (std::uint32_t top = end - count; top < end; ++top) {
    const auto draw = static_cast<std::uint32_t>(begin + prng.below(top - begin + 1));
    if (!chosen.insert(draw).second) chosen.insert(top);
  }
  return chosen;
}

// Some rows and columns much hotter than others.
inline std::set<std::uint32_t> clustered(Prng& prng, std::uint32_t rows, std::uint32_t columns,
                                         std::uint32_t count) {
  const auto skewed = [&](std::uint32_t bound) {
    const std::uint64_t first = prng.below(bound);
    return static_cast<std::uint32_t>(prng.below(prng.below(first + 1) + 1) * 7919 % bound);
  };
  std::set<std::uint32_t> chosen;
  for (int tries = 0; chosen.size() < count && tries < 1000000; ++tries) {
    const std::uint32_t row = skewed(rows);
    chosen.insert(row * columns + skewed(columns));
  }
  return chosen;
}

inline std::uint32_t any_extent(Prng& prng) {
  switch (prng.below(4)) {
    case 0:
      return 1;
    case 1:
      return static_cast<std::uint32_t>(1 + prng.below(4));
    case 2:
      return static_cast<std::uint32_t>(1 + prng.below(60));
    default:
      return static_cast<std::uint32_t>(1 + prng.below(700));
  }
}

inline Entries any_entries(Prng& prng, std::uint32_t room) {
  Entries entries;
  const std::size_t parts = 1 + prng.below(6);
  for (std::uint32_t i = 0; i < parts && room > 0; ++i) {
    const std::uint32_t rows = any_extent(prng), columns = any_extent(prng), size = rows * columns;
    Part part{.tensor = i, .columns = columns, .begin = 0, .end = size};
    if (prng.chance(1, 3)) {
      part.begin = static_cast<std::uint32_t>(prng.below(size));
      part.end = part.begin + 1 + static_cast<std::uint32_t>(prng.below(size - part.begin));
    }
    const std::uint32_t most = std::min(part.end - part.begin, room);
    std::uint32_t count = 1 + static_cast<std::uint32_t>(prng.below(most));
    if (prng.chance(1, 2)) count = std::min(count, 1 + static_cast<std::uint32_t>(prng.below(20)));
    if (prng.chance(1, 8)) count = most;
    entries.add(part, even(prng, part.begin, part.end, count), prng);
    room -= count;
  }
  return entries;
}

// Bits of an ideal coder of independent positions, signs included.
inline double even_bits(double cells, double count) {
  return (std::lgamma(cells + 1) - std::lgamma(count + 1) - std::lgamma(cells - count + 1)) / std::log(2.0) +
         count;
}

}  // namespace rumor::compress
