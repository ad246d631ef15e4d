#include <boost/test/unit_test.hpp>
#include <cmath>

#include "runtime/replica/tail_average.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(averaging_the_tail)

namespace {

// A replica and its log, and the weights after each update.
struct History {
  ParamLayout layout = test::small_layout();
  UpdateLog log{1 << 20};
  ReplicaState state;
  std::vector<LargeVector<std::int32_t>> versions;
  std::vector<std::uint32_t> samples;  // of the update that made the version

  explicit History(std::uint64_t updates) {
    Prng prng(3);
    Replica replica(test::some_run(), layout, LargeVector<std::int32_t>(layout.params(), 1 << 20));
    for (std::uint64_t seq = 1; seq <= updates; ++seq) {
      compress::SparseUpdate update = test::random_update(prng, layout.params(), 40);
      gossip::StoredUpdate stored = test::stored(layout, update, test::stream(1), seq);
      stored.header.samples = static_cast<std::uint32_t>(prng.between(1, 30));
      log.append(stored);
      replica.apply_own(stored.header, std::move(update), stored.payload);
      versions.emplace_back(replica.weights().begin(), replica.weights().end());
      samples.push_back(stored.header.samples);
    }
    state = replica.state();
  }
  RunForm form() const { return {test::some_run(), layout, 24}; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(it_is_the_mean_of_the_versions_by_their_samples) {
  const History history(20);
  constexpr std::size_t versions = 7;
  std::uint64_t samples = 0;
  std::vector<double> mean(history.layout.params(), 0.0);
  for (std::size_t v = 20 - versions; v < 20; ++v) {
    samples += history.samples[v];
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] += static_cast<double>(history.samples[v]) * history.versions[v][i];
  }
  const auto average = tail_average(history.form(), history.state, history.log, samples);
  BOOST_REQUIRE(average.ok());
  BOOST_TEST(average->samples == samples);
  BOOST_REQUIRE(average->weights.size() == mean.size());
  for (std::size_t i = 0; i < mean.size(); ++i)
    BOOST_TEST(std::abs(average->weights[i] - mean[i] / static_cast<double>(samples) / (1 << 24)) < 1e-6);
}

BOOST_AUTO_TEST_CASE(a_tail_of_one_sample_is_the_last_version) {
  const History history(5);
  const auto average = tail_average(history.form(), history.state, history.log, 1);
  BOOST_REQUIRE(average.ok());
  for (std::size_t i = 0; i < average->weights.size(); ++i)
    BOOST_TEST(average->weights[i] == std::ldexp(static_cast<float>(history.versions.back()[i]), -24));
}

BOOST_AUTO_TEST_CASE(a_log_that_is_too_short_says_how_far_it_goes) {
  History history(6);
  std::uint64_t samples = 0;
  for (const std::uint32_t of_one : history.samples) samples += of_one;
  history.log.erase({test::stream(1), 1});
  const auto average = tail_average(history.form(), history.state, history.log, 1000 * samples);
  BOOST_REQUIRE(average.ok());
  BOOST_TEST(average->samples == samples - history.samples.front());
}

BOOST_AUTO_TEST_CASE(updates_that_the_weights_do_not_have_do_not_count) {
  History history(6);
  const std::uint64_t last = history.samples.back();
  ReplicaState before = history.state;
  before.weights = history.versions[4];
  before.have = {};
  before.have.insert(test::stream(1), {1, 5});
  std::uint64_t samples = 0;
  for (const std::uint32_t of_one : history.samples) samples += of_one;
  const auto average = tail_average(history.form(), before, history.log, samples);
  BOOST_REQUIRE(average.ok());
  BOOST_TEST(average->samples == samples - last);
}

BOOST_AUTO_TEST_CASE(a_damaged_log_is_an_error) {
  History history(2);
  MemoryDisk disk;
  {
    UpdateLog log(1 << 20, 0);
    BOOST_REQUIRE(log.open(disk, test::some_run()).ok());
    for (std::uint64_t seq = 1; seq <= 2; ++seq) {
      auto stored = *history.log.find({test::stream(1), seq});
      log.append(stored);
    }
  }
  UpdateLog log(1 << 20, 0);
  BOOST_REQUIRE(log.open(disk, test::some_run()).ok());
  for (auto& [name, bytes] : disk.files) bytes.back() ^= 1;
  const auto average = tail_average(history.form(), history.state, log, 1000);
  BOOST_REQUIRE(!average.ok());
  BOOST_TEST((average.error().code == Errc::corrupt));
}

BOOST_AUTO_TEST_SUITE_END()
