// Segments coded with what both ends of a connection remember.
#include <boost/test/unit_test.hpp>

#include "compress/link/adapt.h"
#include "tests/unit/compress/link/adapt_entries.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(link_history)

namespace {

ParamLayout two_tensors() {
  return ParamLayout::create({{.name = "a", .shape = {300, 200}}, {.name = "b", .shape = {200}}}).value();
}

// One message: rows and columns of the first tensor drawn unevenly, always the same ones.
Entries message(Prng& prng, std::vector<std::uint32_t>& index) {
  Entries entries;
  const std::set<std::uint32_t> chosen = clustered(prng, 300, 200, 150);
  entries.add({.tensor = 0, .columns = 200, .end = 60000}, chosen, prng);
  const std::set<std::uint32_t> bias = even(prng, 0, 200, 5);
  entries.add({.tensor = 1, .columns = 1, .end = 200}, bias, prng);
  index.assign(chosen.begin(), chosen.end());
  for (std::uint32_t position : bias) index.push_back(60000 + position);
  return entries;
}

}  // namespace

BOOST_AUTO_TEST_CASE(history_comes_back_and_saves_bytes) {
  Prng prng(1);
  LinkHistory here(two_tensors()), there(two_tensors());
  std::size_t alone = 0, linked = 0;
  for (int step = 0; step < 30; ++step) {
    std::vector<std::uint32_t> index;
    const Entries entries = message(prng, index);
    const Bytes body = encoded(entries, &here);
    std::vector<std::uint32_t> positions(entries.positions.size());
    Bytes negative(entries.positions.size());
    BOOST_TEST_REQUIRE(adapt_decode(entries.parts, body, &there, positions.data(), negative.data()));
    BOOST_TEST_REQUIRE((positions == entries.positions));
    BOOST_TEST_REQUIRE((negative == entries.negative));
    if (step == 0) BOOST_TEST((body == encoded(entries)));
    alone += encoded(entries).size();
    linked += body.size();
    here.remember(index, entries.negative);
    there.remember(index, entries.negative);
  }
  BOOST_TEST(static_cast<double>(linked) < 0.93 * static_cast<double>(alone));
}

// Rows that keep their sign: the first entry of a row, of which nothing else is known, has it for less than a
// bit.
BOOST_AUTO_TEST_CASE(history_knows_which_way_rows_lean) {
  Prng prng(5);
  LinkHistory history(two_tensors());
  std::size_t kept = 0, random = 0, count = 0;
  for (int step = 0; step < 12; ++step) {
    Entries entries;
    entries.add({.columns = 200, .end = 60000}, even(prng, 0, 60000, 300), prng);
    for (std::size_t e = 0; e < entries.positions.size(); ++e)
      entries.negative[e] = static_cast<std::uint8_t>(entries.positions[e] / 200 % 2);
    check_round_trip(entries, &history);
    if (step >= 4) {
      Entries other = entries;
      for (std::uint8_t& negative : other.negative) negative = static_cast<std::uint8_t>(prng.below(2));
      kept += encoded(entries, &history).size();
      random += encoded(other, &history).size();
      count += entries.positions.size();
    }
    history.remember(entries.positions, entries.negative);
  }
  BOOST_TEST(8 * kept + count / 2 < 8 * random);
}

BOOST_AUTO_TEST_CASE(histories_of_other_messages_are_harmless) {
  Prng prng(2);
  LinkHistory history(two_tensors());
  int read = 0;
  for (int step = 0; step < 60; ++step) {
    std::vector<std::uint32_t> index;
    const Entries entries = message(prng, index);
    BOOST_TEST_REQUIRE(accepted(entries, encoded(entries, &history), &history));
    read += accepted(entries, encoded(entries), &history) ? 1 : 0;
    Bytes damaged = encoded(entries, &history);
    damaged[prng.below(damaged.size())] ^= 4;
    read += accepted(entries, damaged, &history) ? 1 : 0;
    history.remember(index, entries.negative);
  }
  BOOST_TEST(read < 60);
}

BOOST_AUTO_TEST_CASE(parts_the_history_does_not_know_go_without_it) {
  Prng prng(3);
  LinkHistory history(two_tensors());
  std::vector<std::uint32_t> index;
  const Entries known = message(prng, index);
  history.remember(index, known.negative);
  Entries other;
  other.add({.tensor = 9, .columns = 200, .end = 60000}, even(prng, 0, 60000, 70), prng);
  other.add({.tensor = 0, .columns = 100, .end = 60000}, even(prng, 0, 60000, 70), prng);
  other.add({.tensor = 1, .columns = 1, .end = 300}, even(prng, 0, 300, 70), prng);
  BOOST_TEST((encoded(other, &history) == encoded(other)));
  check_round_trip(other, &history);
}

BOOST_AUTO_TEST_CASE(pieces_of_a_tensor_come_back) {
  Prng prng(4);
  LinkHistory history(two_tensors());
  for (int step = 0; step < 8; ++step) {
    const std::uint32_t cut = 1 + static_cast<std::uint32_t>(prng.below(59000));
    Entries first, second;
    first.add({.columns = 200, .end = cut},
              even(prng, 0, cut, 1 + static_cast<std::uint32_t>(prng.below(cut / 2 + 1))), prng);
    second.add({.columns = 200, .begin = cut, .end = 60000}, even(prng, cut, 60000, 400), prng);
    check_round_trip(first, &history);
    check_round_trip(second, &history);
    std::vector<std::uint32_t> index = first.positions;
    index.insert(index.end(), second.positions.begin(), second.positions.end());
    Bytes negative = first.negative;
    negative.insert(negative.end(), second.negative.begin(), second.negative.end());
    history.remember(index, negative);
  }
}

BOOST_AUTO_TEST_SUITE_END()
