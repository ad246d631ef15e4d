// The same bits with every set of kernels, with any number of threads, fused or not; and exactness against the
// plainest way to do it, on data of every kind.
#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>

#include "compress/select/compressor.h"
#include "compress/select/scan_kernels.h"
#include "tests/shortened.h"
#include "tests/unit/compress/generated.h"
#include "tests/unit/threads.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(compressor_bits)

namespace {

// The plainest compressor: everything in one vector, everything sorted.
struct Naive {
  std::vector<float> residual;
  std::uint32_t wanted;

  SparseUpdate absorb(const std::vector<float>& delta) {
    for (std::size_t i = 0; i < residual.size(); ++i) residual[i] += delta[i];
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < residual.size(); ++i)
      if (std::abs(residual[i]) >= 0x1p-25f) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::abs(residual[a]) > std::abs(residual[b]);
    });
    order.resize(std::min<std::size_t>(order.size(), wanted));
    SparseUpdate out;
    if (order.empty()) return out;
    out.step = static_cast<std::int32_t>(std::round(std::abs(residual[order.back()]) * 0x1p24));
    std::sort(order.begin(), order.end());
    const float step = static_cast<float>(out.step * 0x1p-24);
    for (const std::uint32_t i : order) {
      out.index.push_back(i);
      out.negative.push_back(residual[i] < 0);
      residual[i] += residual[i] < 0 ? step : -step;
    }
    return out;
  }
};

enum class Data { bell, tied, tiny, huge, denormal, zero, sparse, jumping };
constexpr Data all_data[] = {Data::bell, Data::tied,     Data::tiny, Data::huge,
                             Data::zero, Data::denormal, Data::sparse, Data::jumping};

float draw(Prng& prng, Data data, int round) {
  const float bell = static_cast<float>(prng.between(-9999, 9999) + prng.between(-9999, 9999)) * 1e-7f;
  switch (data) {
    case Data::bell: return bell;
    case Data::tied: return static_cast<float>(prng.between(-2, 2)) / 64;
    case Data::tiny: return bell * 1e-6f;
    case Data::huge: return bell * 1e4f;
    case Data::denormal: return bell * 1e-37f;
    case Data::zero: return 0;
    case Data::sparse: return prng.chance(1, 500) ? bell : 0;
    case Data::jumping: return bell * (round % 3 == 0 ? 1000.0f : 0.01f);
  }
  return 0;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

std::vector<const ScanKernels*> sets() {
  std::vector<const ScanKernels*> list{&scan_kernels_portable};
  for (const ScanKernels* set : {scan_kernels_avx2(), scan_kernels_avx512()})
    if (set != nullptr) list.push_back(set);
  return list;
}

}  // namespace

BOOST_AUTO_TEST_CASE(exactly_what_sorting_everything_gives_on_data_of_every_kind) {
  Prng prng(31);
  for (const Data data : all_data) {
    for (const double density : {0.0007, 0.02, 0.6}) {
      const ParamLayout layout = layout_of({20'000, 7, 300});
      Compressor compressor(layout, {.density = density});
      Naive naive{std::vector<float>(layout.params(), 0.0f), compressor.target_entries()};
      SparseUpdate out;
      for (int round = 0; round < static_cast<int>(rumor::test::shortened(12)); ++round) {
        std::vector<float> delta(layout.params());
        const bool nothing = round % 3 == 2;
        for (float& value : delta) value = nothing ? 0 : draw(prng, data, round);
        BOOST_TEST_REQUIRE((nothing ? compressor.absorb_nothing(out) : compressor.absorb(delta, out)).ok());
        BOOST_TEST_REQUIRE((out == naive.absorb(delta)));
        if (round % 4 == 3) BOOST_TEST_REQUIRE(same_bits(compressor.residual(), naive.residual));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(kernels_and_threads_leave_no_trace) {
  // The first tensor is three pieces (scan_pass.h), with a sanitizer two.
  const auto most = static_cast<std::uint32_t>(150'000 + rumor::test::shortened(450'000));
  const ParamLayout layout = layout_of({most, 5, 70'003, 1});
  for (const Scope scope : {Scope::global, Scope::tensor}) {
    for (const Emit emit : {Emit::threshold, Emit::mean}) {
      const CompressorOptions options{.density = 0.003, .emit = emit, .scope = scope};
      Compressor reference(layout, options);
      std::vector<std::unique_ptr<Compressor>> others;
      std::vector<std::unique_ptr<rumor::test::Threads>> threads;
      for (const ScanKernels* set : sets()) {
        for (unsigned width = 1; width <= 3; ++width) {
          CompressorOptions own = options;
          own.kernels = set;
          others.push_back(std::make_unique<Compressor>(layout, own));
          threads.push_back(std::make_unique<rumor::test::Threads>(width));
          others.back()->set_parallel(threads.back().get());
        }
      }
      Prng prng(32);
      SparseUpdate expected, out;
      for (int round = 0; round < 5; ++round) {
        std::vector<float> delta(layout.params());
        for (float& value : delta) value = draw(prng, round == 3 ? Data::tied : Data::bell, round);
        BOOST_TEST_REQUIRE(reference.absorb(delta, expected).ok());
        for (auto& other : others) {
          BOOST_TEST_REQUIRE(other->absorb(delta, out).ok());
          BOOST_TEST_REQUIRE((out == expected));
        }
      }
      for (auto& other : others) BOOST_TEST_REQUIRE(same_bits(other->residual(), reference.residual()));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_bf16_delta_is_the_delta_it_stands_for) {
  Prng prng(33);
  const ParamLayout layout = layout_of({4000, 60});
  Compressor floats(layout, {.density = 0.01}), halves(layout, {.density = 0.01});
  SparseUpdate expected, out;
  for (int round = 0; round < 20; ++round) {
    std::vector<float> delta(layout.params());
    std::vector<std::uint16_t> upper(layout.params());
    for (std::size_t i = 0; i < delta.size(); ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(draw(prng, Data::bell, round)) & 0xffff'0000u;
      upper[i] = static_cast<std::uint16_t>(bits >> 16);
      delta[i] = std::bit_cast<float>(bits);
    }
    BOOST_TEST_REQUIRE(floats.absorb(delta, expected).ok());
    BOOST_TEST_REQUIRE(halves.absorb_bf16(upper, out).ok());
    BOOST_TEST_REQUIRE((out == expected));
  }
  BOOST_TEST(same_bits(floats.residual(), halves.residual()));
}

BOOST_AUTO_TEST_CASE(every_message_has_exactly_its_entries) {
  Prng prng(34);
  const ParamLayout layout = layout_of({100'000, 10, 5000, 128});
  for (const Scope scope : {Scope::global, Scope::tensor}) {
    Compressor compressor(layout, {.density = 0.001, .scope = scope});
    SparseUpdate out;
    for (int round = 0; round < 60; ++round) {
      std::vector<float> delta(layout.params());
      for (float& value : delta) value = draw(prng, round % 7 == 6 ? Data::jumping : Data::bell, round);
      BOOST_TEST_REQUIRE(compressor.absorb(delta, out).ok());
      BOOST_TEST_REQUIRE(out.index.size() == compressor.target_entries());
    }
  }
}

BOOST_AUTO_TEST_CASE(each_tensor_gets_its_share_and_a_step_of_its_own) {
  Prng prng(35);
  const ParamLayout layout = layout_of({50'000, 10, 5000});
  Compressor compressor(layout, {.density = 0.001, .scope = Scope::tensor});
  SparseUpdate out;
  std::vector<std::size_t> sent(3, 0);
  std::vector<float> kept(layout.params(), 0.0f);
  constexpr int rounds = static_cast<int>(rumor::test::shortened(400));
  for (int round = 0; round < rounds; ++round) {
    std::vector<float> delta(layout.params());
    for (std::size_t i = 0; i < delta.size(); ++i) {  // the last tensor moves a hundred times as far
      delta[i] = draw(prng, Data::bell, round) * (i >= 50'010 ? 100.0f : 1.0f);
      kept[i] += delta[i];
    }
    BOOST_TEST_REQUIRE(compressor.absorb(delta, out).ok());
    std::size_t e = 0;
    for (const StepRun& run : step_runs(layout, out)) {
      const float step = static_cast<float>(run.step * 0x1p-24);
      for (std::size_t end = run.first + run.count; e < end; ++e)
        kept[out.index[e]] += out.negative[e] != 0 ? step : -step;
    }
    BOOST_TEST_REQUIRE(e == out.index.size());
    for (const std::uint32_t i : out.index) ++sent[i < 50'000 ? 0 : i < 50'010 ? 1 : 2];
    BOOST_TEST_REQUIRE(same_bits(compressor.residual(), kept));
    if (round > 0) BOOST_TEST_REQUIRE(out.tensor_step.size() == 3u);
    if (round > 0) BOOST_TEST_REQUIRE(out.tensor_step[2] > 10 * out.tensor_step[0]);
  }
  BOOST_TEST(std::abs(static_cast<double>(sent[0]) - rounds * 55.0 * 50'000 / 55'010) <= 1.5);
  BOOST_TEST(std::abs(static_cast<double>(sent[1]) - rounds * 55.0 * 10 / 55'010) <= 1.5);
  BOOST_TEST(std::abs(static_cast<double>(sent[2]) - rounds * 55.0 * 5000 / 55'010) <= 1.5);
}

BOOST_AUTO_TEST_CASE(a_smaller_update_is_that_of_a_smaller_target) {
  Prng prng(36);
  const ParamLayout layout = layout_of({30'000, 400});
  Compressor large(layout, {.density = 0.01}), small(layout, {.density = 0.01});
  SparseUpdate out, expected;
  for (int round = 0; round < 10; ++round) {
    std::vector<float> delta(layout.params());
    for (float& value : delta) value = draw(prng, Data::bell, round);
    large.set_entries(304);
    BOOST_TEST_REQUIRE(large.absorb(delta, out).ok());
    large.shrink(200, out);
    large.shrink(150, out);
    small.set_entries(150);
    BOOST_TEST_REQUIRE(small.absorb(delta, expected).ok());
    BOOST_TEST_REQUIRE((out == expected));
    BOOST_TEST_REQUIRE(same_bits(large.residual(), small.residual()));
  }
}

// The mean of the four is on the grid, the largest alone is beyond it: nothing is sent, and nothing may be lost.
BOOST_AUTO_TEST_CASE(a_smaller_update_beyond_the_grid_is_empty_and_all_of_it_waits) {
  Compressor one(layout_of({4}), {.density = 1, .emit = Emit::mean});
  const std::vector<float> delta{200.0f, 50.0f, -50.0f, 0.5f};
  SparseUpdate out;
  BOOST_TEST_REQUIRE(one.absorb(delta, out).ok());
  BOOST_TEST_REQUIRE(out.index.size() == 4u);
  one.shrink(1, out);
  BOOST_TEST(out.index.empty());
  BOOST_TEST(same_bits(one.residual(), delta));
}

BOOST_AUTO_TEST_CASE(an_update_taken_back_is_as_if_it_had_never_been_selected) {
  const ParamLayout layout = layout_of({30'000, 400});
  for (const Scope scope : {Scope::global, Scope::tensor}) {
    Prng prng(38);
    Compressor one(layout, {.density = 0.01, .scope = scope}), other(layout, {.density = 0.01, .scope = scope});
    SparseUpdate out, expected;
    for (int round = 0; round < 6; ++round) {
      std::vector<float> delta(layout.params());
      for (float& value : delta) value = draw(prng, Data::bell, round);
      std::vector<float> sum(one.residual().begin(), one.residual().end());
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += delta[i];
      BOOST_TEST_REQUIRE(one.absorb(delta, out).ok());
      if (round % 3 != 2) {
        one.withdraw(out);
        BOOST_TEST(out.index.empty());
        BOOST_TEST_REQUIRE(same_bits(one.residual(), sum));
      } else if (scope == Scope::global) {
        other.restore_residual(sum);
        BOOST_TEST_REQUIRE(other.absorb(std::vector<float>(layout.params(), 0), expected).ok());
        BOOST_TEST_REQUIRE((out == expected));
      } else {
        one.shrink(1, out);  // less than one entry a tensor: nothing
        BOOST_TEST(out.index.empty());
        BOOST_TEST_REQUIRE(same_bits(one.residual(), sum));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_waits_is_the_same_whether_asked_for_or_not) {
  Prng prng(37);
  const ParamLayout layout = layout_of({9000});
  Compressor asked(layout, {.density = 0.01}), left(layout, {.density = 0.01}), restored(layout, {.density = 0.01});
  SparseUpdate first, second, third;
  for (int round = 0; round < 10; ++round) {
    std::vector<float> delta(layout.params());
    for (float& value : delta) value = draw(prng, Data::bell, round);
    restored.restore_residual(asked.residual());
    BOOST_TEST_REQUIRE(asked.absorb(delta, first).ok());
    BOOST_TEST_REQUIRE(left.absorb(delta, second).ok());
    BOOST_TEST_REQUIRE(restored.absorb(delta, third).ok());
    BOOST_TEST_REQUIRE((first == second && first == third));
  }
}

BOOST_AUTO_TEST_SUITE_END()
