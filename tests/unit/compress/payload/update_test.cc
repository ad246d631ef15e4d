// The payload: what comes back, what it costs, and what is refused.
#include "compress/payload/update.h"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <utility>

#include "compress/payload/bit_io.h"
#include "compress/payload/crc32c.h"
#include "compress/payload/rice.h"
#include "compress/statistics.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(update)

namespace {

void check_round_trip(const ParamLayout& layout, const SparseUpdate& update) {
  const Bytes payload = encode(layout, update);
  const Result<SparseUpdate> decoded = decode(layout, payload);
  BOOST_TEST_REQUIRE(decoded.ok());
  BOOST_TEST_REQUIRE((*decoded == update));
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_updates_come_back) {
  Prng prng(1);
  for (int i = 0; i < 3000; ++i) {
    const ParamLayout layout = random_layout(prng, 8, 600);
    check_round_trip(layout, any_update(prng, layout));
  }
}

BOOST_AUTO_TEST_CASE(every_count_of_a_small_tensor_comes_back) {
  Prng prng(2);
  for (std::uint32_t size = 1; size <= 40; ++size) {
    const ParamLayout layout = layout_of({size});
    for (std::uint32_t count = 0; count <= size; ++count)
      check_round_trip(layout, random_update(prng, size, count, 1 + static_cast<std::int32_t>(count)));
  }
}

BOOST_AUTO_TEST_CASE(one_parameter) {
  const ParamLayout layout = layout_of({1});
  check_round_trip(layout, {.step = 7, .index = {0}, .negative = {1}});
  BOOST_TEST(encode(layout, {}).size() == 1);
}

BOOST_AUTO_TEST_CASE(extremes_of_step_and_size) {
  const ParamLayout layout = layout_of({1, 0x7fff'fffd, 1});
  const std::int32_t step_max = std::numeric_limits<std::int32_t>::max();
  check_round_trip(layout,
                   {.step = step_max, .index = {0, 1, 0x7fff'fffd, 0x7fff'fffe}, .negative = {0, 1, 0, 1}});
  check_round_trip(layout, {.step = 1, .index = {0x7fff'fffe}, .negative = {0}});
  check_round_trip(layout, {.step = 2, .index = {0x7fff'fffd}, .negative = {1}});
}

BOOST_AUTO_TEST_CASE(updates_of_many_segments_come_back) {
  Prng prng(7);
  const ParamLayout layout = layout_of({100'000, 5, 20'000, 400'000, 1, 300'000});
  for (const std::uint32_t count : {16'384u, 16'385u, 33'000u, 70'000u, 400'000u, layout.params()})
    check_round_trip(layout, random_update(prng, layout.params(), count, 9));
}

BOOST_AUTO_TEST_CASE(each_tensor_may_have_its_own_step) {
  Prng prng(8);
  for (int i = 0; i < 2000; ++i) {
    const ParamLayout layout = random_layout(prng, 8, 600);
    SparseUpdate update = any_update(prng, layout);
    give_own_steps(prng, layout, update);
    check_round_trip(layout, update);
  }
}

// Every compiler, optimisation level and processor must give these bytes: replicas compare their hash. The
// constant changes only with the version of compress/FORMAT.md.
BOOST_AUTO_TEST_CASE(bytes_are_the_same_in_every_build) {
  std::vector<const RiceKernels*> sets{&rice_kernels_portable, &rice_kernels()};
  for (const RiceKernels* kernels : sets) {
    Prng prng(9);
    Bytes all;
    for (int i = 0; i < 300; ++i) {
      const ParamLayout layout = i % 50 == 0 ? large_layout(prng) : random_layout(prng, 8, 2000);
      SparseUpdate update =
          i % 50 == 0 ? random_update(prng, layout.params(), 30'000, 7) : any_update(prng, layout);
      if (i % 2 == 0) give_own_steps(prng, layout, update);
      const Bytes payload = encode(layout, update, {nullptr, kernels});
      all.insert(all.end(), payload.begin(), payload.end());
    }
    BOOST_TEST_MESSAGE("bytes " << all.size() << ", checksum " << std::hex << crc32c(all));
    BOOST_TEST(crc32c(all) == 0x5905'a181u);
  }
}

BOOST_AUTO_TEST_CASE(steps_are_normalized_and_walked) {
  const ParamLayout layout = layout_of({3, 2, 4});
  SparseUpdate update{0, {0, 2, 5}, {0, 1, 0}, {7, 0, 9}};
  const std::vector<StepRun> runs = step_runs(layout, update);
  BOOST_TEST_REQUIRE(runs.size() == 2u);
  BOOST_TEST((runs[0].first == 0 && runs[0].count == 2 && runs[0].step == 7));
  BOOST_TEST((runs[1].first == 2 && runs[1].count == 1 && runs[1].step == 9));
  normalize_steps(update);
  BOOST_TEST(update.step == 0);
  update.tensor_step = {7, 0, 7};
  normalize_steps(update);
  BOOST_TEST((update == SparseUpdate{7, {0, 2, 5}, {0, 1, 0}, {}}));
  BOOST_TEST(step_runs(layout, update).size() == 1u);
  SparseUpdate nothing{0, {}, {}, {0, 0, 0}};
  normalize_steps(nothing);
  BOOST_TEST((nothing == SparseUpdate{}));
}

BOOST_AUTO_TEST_CASE(the_divisor_is_the_best_or_next_to_it) {
  Prng prng(3);
  for (const std::uint32_t count : {1000u, 3000u, 9400u, 20000u, 100000u}) {
    const std::uint32_t size = 1'000'000;
    const SparseUpdate update = random_update(prng, size, count, 1);
    const std::uint64_t bits = rice_bits(update.index, 0, rice_code(size, count));
    for (const bool thirds : {false, true})
      for (unsigned low = 0; low < 30; ++low)
        BOOST_TEST(static_cast<double>(bits) <=
                   1.001 * static_cast<double>(rice_bits(update.index, 0, {low, thirds})));
  }
  BOOST_TEST((rice_code(1, 1) == RiceCode{0, false}));
  BOOST_TEST((rice_code(0x7fff'ffff, 1) == RiceCode{29, true}));
}

BOOST_AUTO_TEST_CASE(independent_positions_cost_little_more_than_the_bound) {
  Prng prng(4);
  const std::uint32_t params = 2'000'000;
  const ParamLayout layout = layout_of({params});
  // From 0.5 to 3 %, among them where the divisor changes and the loss is greatest (FORMAT.md, chapter 9).
  const std::pair<std::uint32_t, double> limits[] = {{10'000, 1.007}, {11'000, 1.007}, {14'000, 1.007},
                                                     {20'000, 1.007}, {25'000, 1.008}, {40'000, 1.008},
                                                     {60'000, 1.009}};
  for (const auto& [count, limit] : limits) {
    const double bits =
        8.0 * static_cast<double>(encode(layout, random_update(prng, params, count, 20'000)).size());
    BOOST_TEST(bits <= limit * bound_bits(params, count));
    BOOST_TEST(bits >= bound_bits(params, count));
  }
}

BOOST_AUTO_TEST_CASE(small_and_large_models_meet_their_ratio) {
  Prng prng(5);
  const ParamLayout mlp = mlp_layout();
  std::size_t bytes = 0;
  for (int i = 0; i < 50; ++i) bytes += encode(mlp, random_update(prng, mlp.params(), 118, 30'000)).size();
  BOOST_TEST(bytes <= 50u * 200u);
  BOOST_TEST(4.0 * 50 * mlp.params() / static_cast<double>(bytes) >= 2000);

  const ParamLayout large = layout_of({784 * 1024, 1024, 1024 * 1024, 1024, 10240, 10});
  const std::uint32_t count = large.params() / 1000;
  const std::size_t size = encode(large, random_update(prng, large.params(), count, 30'000)).size();
  BOOST_TEST(4.0 * large.params() / static_cast<double>(size) >= 2450);
}

BOOST_AUTO_TEST_CASE(refusals_say_what_is_wrong) {
  const ParamLayout layout = layout_of({16, 4});
  const auto refused = [&](const Bytes& payload, const char* word) {
    const Result<SparseUpdate> decoded = decode(layout, payload);
    BOOST_TEST_REQUIRE(!decoded.ok());
    BOOST_TEST((decoded.error().code == Errc::corrupt));
    BOOST_TEST_CONTEXT(decoded.error().text) BOOST_TEST(decoded.error().text.find(word) != std::string::npos);
  };
  refused({}, "empty");
  refused({0x00}, "version");
  refused({0x39, 0xa4}, "version");
  refused({0x02, 0x00}, "after an empty");
  refused({0x3a}, "inside the step");
  refused({0x3a, 0x00, 0x00}, "malformed");
  refused({0x0a, 0x06}, "without entries");
  refused({0x3a, 0x24, 0xab, 0x77}, "past the end");
  refused({0x3a, 0x24, 0xab, 0x77, 0x04, 0x00}, "bits after the last");
  refused({0x3a, 0x24, 0xab, 0x77, 0x84}, "bits after the last");
  refused({0x3a, 0x64, 0xab, 0x77, 0x04}, "malformed");  // flag: the step of b would have width 0
}

BOOST_AUTO_TEST_CASE(counts_that_cannot_be_are_refused_before_room_is_made) {
  const ParamLayout layout = layout_of({0x7fff'ffff});
  // Width 1, flag 0, the gamma code of 2^31: one entry for each of 2^31 - 1 parameters, in nine bytes.
  BitWriter out(Bytes{0x0a});
  out.put(0, 1);
  out.put_gamma(std::uint64_t{1} << 31);
  out.put(1, 1);
  const Result<SparseUpdate> decoded = decode(layout, out.take());
  BOOST_TEST_REQUIRE(!decoded.ok());
  BOOST_TEST(decoded.error().text.find("too short for its entry counts") != std::string::npos);
  BitWriter more(Bytes{0x0a});
  more.put(0, 1);
  more.put_gamma((std::uint64_t{1} << 31) + 1);
  const Result<SparseUpdate> beyond = decode(layout, more.take());
  BOOST_TEST_REQUIRE(!beyond.ok());
  BOOST_TEST(beyond.error().text.find("more entries than") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(more_tensors_than_bits_are_refused) {
  const ParamLayout layout = layout_of(std::vector<std::uint32_t>(100, 3));
  const Result<SparseUpdate> decoded = decode(layout, Bytes{0x0a, 0xff, 0xff});
  BOOST_TEST_REQUIRE(!decoded.ok());
  BOOST_TEST(decoded.error().text.find("too short for the model's tensors") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(bits_come_back) {
  Prng prng(6);
  for (int round = 0; round < 200; ++round) {
    BitWriter out(Bytes{});
    std::vector<std::pair<std::uint64_t, unsigned>> written;  // width 99: unary
    for (int i = 0; i < 60; ++i) {
      const unsigned width = static_cast<unsigned>(prng.below(57));
      const bool unary = prng.chance(1, 3);
      const std::uint64_t value = unary ? prng.below(200) : prng.next() & ((std::uint64_t{1} << width) - 1);
      written.emplace_back(value, unary ? 99 : width);
      unary ? out.put_unary(value) : out.put(value, width);
    }
    const Bytes bytes = out.take();
    BitReader in(bytes);
    for (const auto& [value, width] : written)
      BOOST_TEST_REQUIRE((width == 99 ? static_cast<std::uint64_t>(in.take_unary()) : in.take(width)) ==
                         value);
    BOOST_TEST(in.remaining() < 8u);
    BOOST_TEST(in.take_unary() == -1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
