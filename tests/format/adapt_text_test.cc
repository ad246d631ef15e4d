// ADAPT and LINK against their specification: the example of the text, and the second decoder.
#include <boost/test/unit_test.hpp>

#include "compress/link/adapt.h"
#include "tests/format/slow_adapt.h"
#include "tests/unit/compress/link/adapt_entries.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(adapt_text)

namespace {

std::vector<slow::AdaptPart> slow_parts(const std::vector<Part>& parts) {
  std::vector<slow::AdaptPart> same;
  for (const Part& part : parts)
    same.push_back({.tensor = part.tensor,
                    .columns = part.columns,
                    .begin = part.begin,
                    .end = part.end,
                    .count = part.count});
  return same;
}

// Both decoders must agree. True when the body is accepted.
bool judge(const std::vector<Part>& parts, const Bytes& body, const LinkHistory* history = nullptr,
           const slow::AdaptHistory* slow_history = nullptr) {
  std::size_t count = 0;
  for (const Part& part : parts) count += part.count;
  std::vector<std::uint32_t> positions(count);
  Bytes negative(count);
  const bool fast = adapt_decode(parts, body, history, positions.data(), negative.data());
  const auto slow = slow::decode_adapt(slow_parts(parts), body, slow_history);
  BOOST_TEST_REQUIRE(fast == slow.has_value());
  for (std::size_t i = 0; fast && i < count; ++i) {
    BOOST_TEST_REQUIRE((*slow)[i].position == positions[i]);
    BOOST_TEST_REQUIRE((*slow)[i].minus == (negative[i] == 1));
  }
  return fast;
}

Bytes damaged(Prng& prng, Bytes body) {
  const std::uint64_t kind = prng.below(3);
  if (kind == 0 && !body.empty()) body.resize(prng.below(body.size()));
  if (kind == 1) body.push_back(static_cast<std::uint8_t>(prng.below(256)));
  if (kind == 2 && !body.empty())
    body[prng.below(body.size())] ^= static_cast<std::uint8_t>(1 + prng.below(255));
  return body;
}

}  // namespace

// compress/ADAPT.md, chapter 11. These bytes come from the text.
BOOST_AUTO_TEST_CASE(worked_example) {
  const Bytes body{0x9A, 0x73, 0x2E, 0xAD, 0x04};
  const auto read = slow::decode_adapt({{.columns = 4, .end = 16, .count = 3}}, body, nullptr);
  BOOST_TEST_REQUIRE(read.has_value());
  const std::vector<slow::AdaptEntry> wanted{{3, false}, {9, true}, {10, true}};
  BOOST_TEST((*read == wanted));
}

BOOST_AUTO_TEST_CASE(both_decoders_read_the_same) {
  Prng prng(1);
  for (int i = 0; i < 150; ++i) {
    const Entries entries = any_entries(prng, i % 10 == 0 ? 600 : 80);
    const Bytes body = encoded(entries);
    BOOST_TEST_REQUIRE(judge(entries.parts, body));
    for (int change = 0; change < 4; ++change) judge(entries.parts, damaged(prng, body));
  }
}

BOOST_AUTO_TEST_CASE(both_decoders_read_clusters) {
  Prng prng(2);
  Entries entries;
  entries.add({.columns = 90, .end = 200 * 90}, clustered(prng, 200, 90, 1200), prng);
  entries.add({.tensor = 1, .columns = 300, .end = 12 * 300}, clustered(prng, 12, 300, 900), prng);
  BOOST_TEST(judge(entries.parts, encoded(entries)));
}

BOOST_AUTO_TEST_CASE(both_decoders_read_what_is_too_wide_or_too_tall_for_one_set) {
  Prng prng(3);
  for (const std::uint32_t columns : {1u, 3u, 40000u}) {
    for (int i = 0; i < 3; ++i) {
      Entries entries;
      const Part part{.columns = columns, .end = 600000};
      entries.add(part, even(prng, 0, part.end, 6), prng);
      const Bytes body = encoded(entries);
      BOOST_TEST(judge(entries.parts, body));
      judge(entries.parts, damaged(prng, body));
    }
  }
}

BOOST_AUTO_TEST_CASE(both_decoders_use_the_history_alike) {
  Prng prng(4);
  const ParamLayout layout =
      ParamLayout::create({{.name = "a", .shape = {60, 40}}, {.name = "b", .shape = {50}}}).value();
  LinkHistory fast(layout);
  slow::AdaptHistory slow({{60, 40}, {50, 1}});
  for (int step = 0; step < 25; ++step) {
    Entries entries;
    const std::set<std::uint32_t> weights = clustered(prng, 60, 40, 5 + 4 * static_cast<std::uint32_t>(step));
    const std::set<std::uint32_t> biases = even(prng, 0, 50, 4);
    entries.add({.tensor = 0, .columns = 40, .end = 2400}, weights, prng);
    entries.add({.tensor = 1, .columns = 1, .end = 50}, biases, prng);
    const Bytes body = encoded(entries, &fast);
    BOOST_TEST_REQUIRE(judge(entries.parts, body, &fast, &slow));
    judge(entries.parts, damaged(prng, body), &fast, &slow);
    std::vector<std::uint32_t> index(weights.begin(), weights.end());
    for (std::uint32_t position : biases) index.push_back(2400 + position);
    fast.remember(index, entries.negative);
    std::vector<std::vector<slow::AdaptEntry>> seen(2);
    for (std::size_t e = 0; e < index.size(); ++e) {
      const bool bias = index[e] >= 2400;
      seen[bias].push_back({index[e] - (bias ? 2400u : 0u), entries.negative[e] != 0});
    }
    slow.remember(seen);
  }
}

BOOST_AUTO_TEST_SUITE_END()
