// Every set of scan kernels against the portable one, and that against plain arithmetic: same bits, nothing
// written outside.
#include "compress/select/scan_kernels.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/base/prng.h"
#include "tests/shortened.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(scan_kernels_suite)

namespace {

constexpr std::uint32_t guard = 0xdead'beef;
constexpr std::size_t margin = 8;  // floats before and after that must stay as they are

std::vector<const ScanKernels*> all_sets() {
  std::vector<const ScanKernels*> sets{&scan_kernels_portable, &scan_kernels()};
  for (const ScanKernels* set : {scan_kernels_avx2(), scan_kernels_avx512()}) {
    if (set != nullptr)
      sets.push_back(set);
    else
      BOOST_TEST_MESSAGE("this processor lacks the instructions of one set: it was not run");
  }
  return sets;
}

struct Case {
  std::vector<float> residual, change, first, second, last, weights;
  std::vector<std::uint16_t> bf16;
  StepRule rule;
  std::uint32_t cutoff = 1;
};

struct Outcome {
  std::vector<std::uint32_t> index;
  std::vector<float> value, residual, first, second, last;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;  // which of the many is open
    if (std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i])) return false;
  }
  return a.size() == b.size();
}

bool same(const Outcome& a, const Outcome& b) {
  return a.index == b.index && same_bits(a.value, b.value) && same_bits(a.residual, b.residual) &&
         same_bits(a.first, b.first) && same_bits(a.second, b.second) && same_bits(a.last, b.last);
}

Outcome run(const ScanKernels& kernels, Case c, ChangeForm form, std::size_t skip) {
  const std::size_t size = c.residual.size() - 2 * margin, begin = margin + skip, end = margin + size;
  Outcome outcome;
  outcome.index.assign(size + scan_slack + 1, guard);
  outcome.value.assign(size + scan_slack + 1, 0);
  c.rule.first = c.first.data();
  c.rule.second = c.second.data();
  c.rule.last = c.last.data();
  c.rule.weights = c.weights.data();
  const ScanInput input{c.residual.data(), c.change.data(), c.bf16.data(), c.rule};
  const std::size_t count = kernels.scan[static_cast<std::size_t>(form)](
      input, begin, end, c.cutoff, outcome.index.data(), outcome.value.data());
  BOOST_TEST_REQUIRE(count <= end - begin);
  BOOST_TEST_REQUIRE(outcome.index[end - begin + scan_slack] == guard);
  outcome.index.resize(count);
  outcome.value.resize(count);
  outcome.residual = c.residual;
  outcome.first = c.first;
  outcome.second = c.second;
  outcome.last = c.last;
  return outcome;
}

float any_float(Prng& prng) {
  const std::uint64_t kind = prng.below(60);
  if (kind == 0) return std::numeric_limits<float>::infinity();
  if (kind == 1) return -std::numeric_limits<float>::infinity();
  if (kind == 2) return -0.0f;
  if (kind == 3) return std::bit_cast<float>(static_cast<std::uint32_t>(prng.below(1000)));  // denormal
  if (kind == 4) return std::numeric_limits<float>::quiet_NaN();
  if (kind == 5) return 1e38f;
  return static_cast<float>(prng.between(-1000, 1000)) / 1024;
}

Case any_case(Prng& prng, std::size_t size) {
  Case c;
  for (std::size_t i = 0; i < size + 2 * margin; ++i) {
    c.residual.push_back(any_float(prng));
    c.change.push_back(any_float(prng));
    c.first.push_back(any_float(prng));
    c.second.push_back(std::abs(any_float(prng)));
    c.last.push_back(any_float(prng));
    c.weights.push_back(any_float(prng));
    c.bf16.push_back(static_cast<std::uint16_t>(prng.below(1 << 16)));
  }
  c.rule = {.factor = -0.37f, .ahead = -0.07f, .keep1 = 0.9f, .take1 = 0.1f, .keep2 = 0.99f, .take2 = 0.01f,
            .bias_correction = 1.7f, .epsilon = 1e-6f, .decay = -0.003f};
  const std::uint32_t cutoffs[] = {1, std::bit_cast<std::uint32_t>(0.5f), std::bit_cast<std::uint32_t>(1.2f),
                                   0x7f80'0000, 0x7fff'ffff};
  c.cutoff = cutoffs[prng.below(5)];
  return c;
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_sets_agree_on_every_form) {
  Prng prng(21);
  const std::vector<const ScanKernels*> sets = all_sets();
  for (std::uint64_t round = 0; round < rumor::test::shortened(300); ++round) {
    const std::size_t size = 1 + prng.below(round % 2 == 0 ? 200 : 3000);
    const Case c = any_case(prng, size);
    const std::size_t skip = prng.below(std::min<std::size_t>(size, 40));
    for (std::size_t form = 0; form < change_forms; ++form) {
      const Outcome expected = run(scan_kernels_portable, c, static_cast<ChangeForm>(form), skip);
      for (const ScanKernels* set : sets)
        BOOST_TEST_REQUIRE(same(run(*set, c, static_cast<ChangeForm>(form), skip), expected),
                           set->name << " form " << form << " size " << size << " skip " << skip);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_portable_set_adds_and_finds_what_it_should) {
  Prng prng(22);
  for (int round = 0; round < 200; ++round) {
    const std::size_t size = 1 + prng.below(500), skip = prng.below(size);
    const Case c = any_case(prng, size);
    for (const ChangeForm form : {ChangeForm::none, ChangeForm::floats, ChangeForm::bf16}) {
      const Outcome outcome = run(scan_kernels_portable, c, form, skip);
      Outcome expected{.index = {}, .value = {}, .residual = c.residual, .first = c.first, .second = c.second,
                       .last = c.last};
      for (std::size_t i = margin + skip; i < margin + size; ++i) {
        if (form == ChangeForm::floats) expected.residual[i] += c.change[i];
        if (form == ChangeForm::bf16)
          expected.residual[i] += std::bit_cast<float>(std::uint32_t{c.bf16[i]} << 16);
        if ((std::bit_cast<std::uint32_t>(expected.residual[i]) & 0x7fff'ffff) < c.cutoff) continue;
        expected.index.push_back(static_cast<std::uint32_t>(i));
        expected.value.push_back(expected.residual[i]);
      }
      BOOST_TEST_REQUIRE(same(outcome, expected));
    }
  }
}

BOOST_AUTO_TEST_CASE(choosing_among_candidates_is_the_same_everywhere) {
  Prng prng(23);
  const std::vector<const ScanKernels*> sets = all_sets();
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = prng.below(300);
    std::vector<float> value(count);
    std::vector<std::uint32_t> index(count);
    for (std::size_t i = 0; i < count; ++i) {
      value[i] = any_float(prng);
      index[i] = static_cast<std::uint32_t>(7 * i + prng.below(7));
    }
    const auto magnitude = [&](std::size_t i) { return std::bit_cast<std::uint32_t>(value[i]) & 0x7fff'ffff; };
    const std::uint32_t low = std::bit_cast<std::uint32_t>(static_cast<float>(prng.below(900)) / 1024);
    const std::uint32_t high = prng.chance(1, 3) ? 1u << 31 : low + (1u << 22);
    std::vector<std::uint32_t> inside, kept;
    std::vector<std::uint8_t> negative;
    for (std::size_t i = 0; i < count; ++i) {
      if (magnitude(i) >= low && magnitude(i) < high) inside.push_back(magnitude(i));
      if (magnitude(i) < low) continue;
      kept.push_back(index[i]);
      negative.push_back(std::signbit(value[i]));
    }
    for (const ScanKernels* set : sets) {
      std::vector<std::uint32_t> bits(count + scan_slack), out(kept.size() + 1, guard);
      std::vector<std::uint8_t> signs(kept.size() + 1, 77);
      bits.resize(set->between(value.data(), count, low, high, bits.data()));
      BOOST_TEST_REQUIRE((bits == inside), set->name);
      set->keep(index.data(), value.data(), count, low, kept.size(), out.data(), signs.data());
      BOOST_TEST_REQUIRE(out.back() == guard);
      BOOST_TEST_REQUIRE(signs.back() == 77);
      out.pop_back();
      signs.pop_back();
      BOOST_TEST_REQUIRE((out == kept && signs == negative), set->name);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
