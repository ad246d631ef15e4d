// Lanes over a text: what follows what, which states are zero, and that shards are disjoint.
#include "models/data/lanes.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <set>

#include "runtime/base/check.h"

namespace rumor::models {
namespace {

// A text of so many rows of one token, which is the number of the row.
std::shared_ptr<const DataSet> text_of(std::uint32_t rows) {
  DataSet data;
  data.name = "lanes";
  data.vocabulary = 65'536;
  data.context = 1;
  const auto bytes = std::make_shared<std::vector<std::uint8_t>>();
  for (std::uint32_t i = 0; i <= rows; ++i)
    bytes->insert(bytes->end(), {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i >> 8)});
  data.train_tokens.append(bytes, *bytes, TokenArray::Width::word);
  return std::make_shared<const DataSet>(std::move(data));
}

std::multiset<std::uint32_t> rows_of(const std::vector<RowStretch>& stretches) {
  std::multiset<std::uint32_t> rows;
  for (const RowStretch& stretch : stretches)
    for (std::uint32_t i = 0; i < stretch.rows; ++i) rows.insert(stretch.first + i);
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(lanes)

BOOST_AUTO_TEST_CASE(stretches_of_all_peers_are_the_text) {
  for (const std::uint32_t rows : {5u, 200u, 5000u, 20'003u}) {
    for (const std::uint32_t skew : {0u, 1u}) {
      const auto data = text_of(rows);
      std::multiset<std::uint32_t> all;
      std::size_t least = rows, most = 0;
      for (std::uint32_t index = 0; index < 5; ++index) {
        const std::vector<RowStretch> stretches = shard_stretches(*data, {index, 5, 9, skew});
        BOOST_TEST((stretches == shard_stretches(*data, {index, 5, 9, skew})));
        const std::multiset<std::uint32_t> own = rows_of(stretches);
        all.insert(own.begin(), own.end());
        least = std::min(least, own.size());
        most = std::max(most, own.size());
        for (const RowStretch& stretch : stretches) BOOST_TEST((stretch.rows >= 1 && stretch.rows <= stretch_rows + 1));
        if (rows >= 200) BOOST_TEST(stretches.size() >= 13u);
      }
      BOOST_TEST(all.size() == rows);
      BOOST_TEST((std::set<std::uint32_t>(all.begin(), all.end()).size() == rows));
      BOOST_TEST(most <= least + least / 16 + 1);
    }
  }
}

// A skewed peer has the passages that it has without lanes.
BOOST_AUTO_TEST_CASE(passages_of_a_skewed_shard_are_cut) {
  const auto data = text_of(5000);
  const Shard shard{2, 4, 7, 3};
  const std::vector<std::uint32_t> rows = shard_rows(*data, shard);
  BOOST_TEST((rows_of(shard_stretches(*data, shard)) == std::multiset<std::uint32_t>(rows.begin(), rows.end())));
}

BOOST_AUTO_TEST_CASE(a_row_continues_its_lane_or_begins_with_zeros) {
  const auto data = text_of(1000);
  constexpr std::uint32_t lanes = 3, floats = 2;
  BatchSampler sampler(data, {1, 2}, lanes, 5, floats), twin(data, {1, 2}, lanes, 5, floats);
  BatchSampler other(data, {1, 2}, lanes, 6, floats);
  std::map<std::uint32_t, int> visits;
  std::vector<Token> last(lanes, 0xffff);
  std::size_t begun = 0, unlike = 0;
  BOOST_TEST((sampler.rows() >= 490u && sampler.rows() <= 510u));
  for (std::uint32_t step = 0; step < 100; ++step) {
    const Batch batch = sampler.next();
    BOOST_REQUIRE(batch.state.size() == lanes * floats);
    const Batch again = twin.next(), elsewhere = other.next();
    BOOST_TEST((std::equal(batch.tokens.begin(), batch.tokens.end(), again.tokens.begin())));
    unlike += !std::equal(batch.tokens.begin(), batch.tokens.end(), elsewhere.tokens.begin());
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      const Token token = batch.tokens[lane * 2];
      const float state = batch.state[lane * floats];
      BOOST_TEST(state == batch.state[lane * floats + 1]);
      if (state == 0) {
        ++begun;
      } else {
        BOOST_TEST(token == last[lane] + 1);
        BOOST_TEST(state == static_cast<float>(last[lane] + 1));
      }
      last[lane] = token;
      // As a model leaves its state.
      for (std::uint32_t i = 0; i < floats; ++i) batch.state[lane * floats + i] = static_cast<float>(token + 1);
    }
  }
  BOOST_TEST((begun >= 8u && begun <= 16u), begun);  // 300 rows in stretches of about 31
  BOOST_TEST(unlike > 90u);
}

BOOST_AUTO_TEST_CASE(an_epoch_deals_every_row_once) {
  const auto data = text_of(400);
  Prng prng(3);
  Lanes one(*data, {0, 2}, 1, 4);
  std::multiset<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < one.rows(); ++i) {
    std::uint32_t row = 0;
    one.next(prng, {&row, 1});
    seen.insert(row);
  }
  BOOST_TEST((seen == rows_of(shard_stretches(*data, {0, 2}))));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
