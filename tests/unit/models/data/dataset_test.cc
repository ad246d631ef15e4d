// The synthetic set, shards and batches.
#include "models/data/dataset.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <set>

namespace rumor::models {
namespace {

// A set of `rows` rows of two bytes: the row's number, low byte first; so a drawn row says which one it was.
std::shared_ptr<const DataSet> numbered(std::uint32_t rows) {
  DataSet data;
  data.inputs = 2;
  data.classes = 2;
  data.train.rows = rows;
  for (std::uint32_t row = 0; row < rows; ++row) {
    data.train.pixels.push_back(static_cast<std::uint8_t>(row & 0xff));
    data.train.pixels.push_back(static_cast<std::uint8_t>(row >> 8));
    data.train.label.push_back(static_cast<std::uint8_t>(row % 2));
  }
  return finish_data(std::move(data), {});
}

std::vector<std::uint32_t> drawn_rows(BatchSampler& sampler, const DataSet& data, std::size_t batches) {
  std::vector<std::uint32_t> rows;
  for (std::size_t i = 0; i < batches; ++i) {
    const Batch batch = sampler.next();
    for (std::uint32_t r = 0; r < batch.rows; ++r) {
      const auto byte = [&](std::uint32_t c) {
        return std::lround(batch.x[r * 2 + c] / data.scale + data.mean);
      };
      rows.push_back(static_cast<std::uint32_t>(byte(0) + 256 * byte(1)));
      BOOST_TEST(batch.label[r] == rows.back() % 2);
    }
  }
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dataset)

BOOST_AUTO_TEST_CASE(pictures_of_a_batch_shrink_to_their_means) {
  const auto data = load_data({}).value();  // 8 x 8
  const std::uint32_t rows[] = {5, 0, 77};
  BatchMemory whole_memory, memory;
  const Batch whole = data->train_batch(rows, whole_memory);
  for (const std::uint32_t size : {4u, 2u, 4u}) {
    const Batch small = data->train_batch(rows, memory, size);
    BOOST_REQUIRE(small.x.size() == 3 * size * size);
    BOOST_TEST(std::equal(whole.label.begin(), whole.label.end(), small.label.begin(), small.label.end()));
    const std::uint32_t step = 8 / size;
    for (std::uint32_t i = 0; i < small.x.size(); ++i) {
      const std::uint32_t row = i / (size * size), y = i / size % size, x = i % size;
      double sum = 0;
      for (std::uint32_t dy = 0; dy < step; ++dy)
        for (std::uint32_t dx = 0; dx < step; ++dx)
          sum += static_cast<double>(whole.x[row * 64 + (y * step + dy) * 8 + x * step + dx]);
      BOOST_TEST(std::abs(small.x[i] - sum / (step * step)) < 1e-6);
    }
  }
  const Batch same = data->train_batch(rows, memory, 8);
  BOOST_TEST(std::equal(whole.x.begin(), whole.x.end(), same.x.begin(), same.x.end()));
}

BOOST_AUTO_TEST_CASE(normalised_values_have_mean_zero_and_deviation_one) {
  const auto data = load_data({.kind = "synthetic", .path = "", .seed = 3});
  BOOST_REQUIRE(data.ok());
  const DataSet& set = **data;
  std::vector<float> x(set.inputs);
  double sum = 0, squares = 0;
  for (std::uint32_t row = 0; row < set.train.rows; ++row) {
    set.fill(row, x.data());
    for (const float value : x) {
      sum += value;
      squares += static_cast<double>(value) * value;
    }
  }
  const double count = static_cast<double>(set.train.rows) * set.inputs;
  BOOST_TEST(std::abs(sum / count) < 1e-5);
  BOOST_TEST(std::abs(squares / count - 1) < 1e-5);
}

BOOST_AUTO_TEST_CASE(a_constant_set_is_not_divided_by_zero) {
  DataSet data;
  data.inputs = 1;
  data.train = {{5, 5}, {0, 1}, 2};
  const auto finished = finish_data(std::move(data), {{7}, {0}, 1});
  BOOST_TEST(finished->scale == 1.0f);
  BOOST_TEST(finished->test.x[0] == 2.0f);
}

BOOST_AUTO_TEST_CASE(the_synthetic_set_depends_on_its_seed_alone) {
  const auto a = *load_data({.kind = "synthetic", .path = "", .seed = 1});
  const auto same = *load_data({.kind = "synthetic", .path = "ignored", .seed = 1});
  const auto other = *load_data({.kind = "synthetic", .path = "", .seed = 2});
  BOOST_TEST((a->train.pixels == same->train.pixels));
  BOOST_TEST((a->test.x == same->test.x));
  BOOST_TEST((a->train.pixels != other->train.pixels));
  BOOST_TEST(a->inputs == 64u);
  BOOST_TEST(a->classes == 10u);
  BOOST_TEST(a->train.rows == 8'000u);
  BOOST_TEST(a->test.batch().rows == 2'000u);
  std::map<int, int> count;
  for (const std::uint8_t label : a->train.label) ++count[label];
  BOOST_REQUIRE(count.size() == 10u);
  for (const auto& [label, rows] : count)
    BOOST_TEST((rows > 640 && rows < 960), "class " << label << ": " << rows);
}

BOOST_AUTO_TEST_CASE(the_order_of_rows_does_not_depend_on_how_many_come_at_once) {
  const auto data = numbered(50);
  BatchSampler fours(data, {0, 2}, 4, 7), others(data, {0, 2}, 4, 7);
  std::vector<std::uint32_t> rows, again;
  for (std::uint32_t drawn = 0; drawn < 72; drawn += 4) {  // almost three epochs
    const auto next = fours.next_rows();
    rows.insert(rows.end(), next.begin(), next.end());
  }
  for (std::uint32_t at = 0, size = 1; at < 72; at += size, size = size % 3 + 1) {
    BOOST_TEST(others.next(size).rows == size);
    again.resize(at + size);
  }
  BatchSampler ones(data, {0, 2}, 1, 7);
  for (std::uint32_t& row : again) row = ones.next_rows()[0];
  BOOST_TEST(again == rows);
  const auto behind = fours.next_rows(4), same = others.next_rows(4);
  BOOST_TEST(std::equal(behind.begin(), behind.end(), same.begin(), same.end()));
}

BOOST_AUTO_TEST_CASE(shards_are_disjoint_and_cover_the_set) {
  const auto data = numbered(1003);
  for (const std::uint32_t count : {1u, 4u, 7u, 1003u}) {
    std::multiset<std::uint32_t> seen;
    for (std::uint32_t index = 0; index < count; ++index) {
      BatchSampler sampler(data, {index, count}, 1, 42 + index);  // whatever order each draws in
      BOOST_TEST((sampler.rows() == 1003 / count || sampler.rows() == 1003 / count + 1));
      const std::vector<std::uint32_t> rows = drawn_rows(sampler, *data, sampler.rows());
      seen.insert(rows.begin(), rows.end());
    }
    BOOST_REQUIRE(seen.size() == 1003u);
    BOOST_TEST(std::set<std::uint32_t>(seen.begin(), seen.end()).size() == 1003u);
  }
}

BOOST_AUTO_TEST_CASE(skewed_shards_are_disjoint_cover_the_set_and_see_few_classes) {
  DataSet made;
  made.inputs = 1;
  made.classes = 10;
  made.train.rows = 1000;
  made.train.pixels.resize(1000);
  Prng prng(3);
  for (int row = 0; row < 1000; ++row) made.train.label.push_back(static_cast<std::uint8_t>(prng.below(10)));
  const auto data = finish_data(std::move(made), {});
  for (const std::uint32_t skew : {1u, 2u, 7u}) {
    std::set<std::uint32_t> seen;
    std::size_t classes = 0;
    for (std::uint32_t index = 0; index < 20; ++index) {
      const std::vector<std::uint32_t> rows = shard_rows(*data, {index, 20, 9, skew});
      BOOST_TEST((rows == shard_rows(*data, {index, 20, 9, skew})));
      BOOST_TEST((rows != shard_rows(*data, {index, 20, 8, skew})));
      BOOST_TEST((rows.size() + skew >= 50 && rows.size() <= 50 + skew));
      seen.insert(rows.begin(), rows.end());
      std::set<int> own;
      for (const std::uint32_t row : rows) own.insert(data->train.label[row]);
      BOOST_TEST(own.size() <= 2 * skew);  // a piece may lie across two classes
      classes += own.size();
    }
    BOOST_TEST(seen.size() == 1000u);
    BOOST_TEST(classes <= 20 * skew + 10 - 1);  // there are nine borders only
  }
  BOOST_TEST(check_shard(*data, {0, 20, 9, 51}).error().text ==
             "shard 1 of 20 with data.skew = 51 does not exist: the data set  has 1000 training rows");
  BOOST_TEST(!check_shard(*data, {3, 3}).ok());
  BOOST_TEST(!check_shard(*data, {0, 0}).ok());
}

BOOST_AUTO_TEST_CASE(every_epoch_visits_each_row_once_in_a_new_order) {
  const auto data = numbered(100);
  BatchSampler sampler(data, {1, 2}, 7, 5);  // 50 rows; batches span epochs
  const std::vector<std::uint32_t> rows = drawn_rows(sampler, *data, 50);
  BOOST_REQUIRE(rows.size() == 350u);
  const std::vector<std::uint32_t> first(rows.begin(), rows.begin() + 50),
      second(rows.begin() + 50, rows.begin() + 100);
  const std::set<std::uint32_t> members(first.begin(), first.end());
  BOOST_TEST(members.size() == 50u);
  for (std::size_t epoch = 0; epoch < 7; ++epoch) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(epoch * 50);
    BOOST_TEST((std::set<std::uint32_t>(begin, begin + 50) == members));
  }
  BOOST_TEST((first != second));
}

BOOST_AUTO_TEST_CASE(the_order_is_fixed_by_seed_and_shard) {
  const auto data = numbered(60);
  const auto rows_of = [&](Shard shard, std::uint64_t seed) {
    BatchSampler sampler(data, shard, 4, seed);
    return drawn_rows(sampler, *data, 20);
  };
  BOOST_TEST((rows_of({0, 3}, 1) == rows_of({0, 3}, 1)));
  BOOST_TEST((rows_of({0, 3}, 1) != rows_of({0, 3}, 2)));
  BOOST_TEST((rows_of({0, 3}, 1) != rows_of({1, 3}, 1)));
}

BOOST_AUTO_TEST_CASE(a_batch_may_be_larger_than_the_shard) {
  const auto data = numbered(3);
  BatchSampler sampler(data, {0, 1}, 9, 1);
  std::vector<std::uint32_t> rows = drawn_rows(sampler, *data, 1);
  std::sort(rows.begin(), rows.end());
  BOOST_TEST((rows == std::vector<std::uint32_t>{0, 0, 0, 1, 1, 1, 2, 2, 2}));
}

BOOST_AUTO_TEST_CASE(a_set_is_described_without_reading_it) {
  const auto facts = [](const DataSet& data) {
    ModelConfig model;
    data.describe(model);
    return std::vector<std::uint32_t>{model.inputs, model.classes, model.channels, model.height, model.width};
  };
  BOOST_TEST(facts(*describe_data({.kind = "synthetic"})) == facts(**load_data({.kind = "synthetic"})));
  if (const auto fashion = load_data({.kind = "idx"}))  // where the package is
    BOOST_TEST(facts(*describe_data({.kind = "idx"})) == facts(**fashion));
  BOOST_TEST(describe_data({.kind = "cifar10"})->inputs == 3072u);
  BOOST_TEST(describe_data({.kind = "text"})->vocabulary == 256u);
  BOOST_TEST(describe_data({.kind = "tokens"})->vocabulary == 50'257u);
  BOOST_TEST((describe_data({.kind = "txt"}).error().code == Errc::usage));
}

BOOST_AUTO_TEST_CASE(an_unknown_kind_names_the_known_ones) {
  const auto refused = load_data({.kind = "csv", .path = "", .seed = 1});
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == Errc::usage));
  BOOST_TEST(refused.error().text == "unknown data kind 'csv'; known: idx, cifar10, synthetic, text, tokens");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
