// Every set of scan kernels against the portable one: same bits, nothing written outside.
#include "compress/scan_kernels.h"

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/base/prng.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(scan_kernels_suite)

namespace {

constexpr std::uint32_t guard = 0xdead'beef;

struct Outcome {
  std::size_t count = 0;
  std::vector<std::uint32_t> residual_bits, found;  // found: with a guard word after the room
  bool operator==(const Outcome&) const = default;
};

Outcome run(const ScanKernels& kernels, std::vector<float> residual, const std::vector<float>& delta,
            std::size_t skip, std::uint32_t cutoff, std::size_t room, bool adding) {
  Outcome outcome;
  outcome.found.assign(room + 1, guard);
  const std::size_t size = delta.size() - skip - 1;  // one float before and after stays untouched
  outcome.count = adding ? kernels.add_and_collect(residual.data() + skip, delta.data() + skip, size, cutoff,
                                                   outcome.found.data(), room)
                         : kernels.collect(residual.data() + skip, size, cutoff, outcome.found.data(), room);
  for (const float value : residual) outcome.residual_bits.push_back(std::bit_cast<std::uint32_t>(value));
  return outcome;
}

float any_float(Prng& prng) {
  const std::uint64_t kind = prng.below(40);
  if (kind == 0) return std::numeric_limits<float>::infinity();
  if (kind == 1) return -std::numeric_limits<float>::infinity();
  if (kind == 2) return -0.0f;
  if (kind == 3) return std::bit_cast<float>(static_cast<std::uint32_t>(prng.below(1000)));  // denormal
  return static_cast<float>(prng.between(-1000, 1000)) / 1024;
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_sets_agree) {
  const ScanKernels* avx2 = scan_kernels_avx2();
  std::vector<const ScanKernels*> sets{&scan_kernels(), &scan_kernels_portable};
  if (avx2 != nullptr)
    sets.push_back(avx2);
  else
    BOOST_TEST_MESSAGE("this processor has no AVX2: only the portable kernels were run");
  Prng prng(21);
  for (int round = 0; round < 400; ++round) {
    const std::size_t size = 2 + prng.below(round < 200 ? 70 : 3000);
    const std::size_t skip = size > 10 ? prng.below(9) : 0;
    std::vector<float> residual(size), delta(size);
    for (float& value : residual) value = any_float(prng);
    for (float& value : delta) value = any_float(prng);
    const std::uint32_t cutoffs[] = {1, std::bit_cast<std::uint32_t>(0.9f), 0x7f80'0000, 0x7fff'ffff};
    const std::uint32_t cutoff = cutoffs[prng.below(4)];
    const std::size_t room = prng.chance(1, 2) ? size : prng.below(20);
    for (const bool adding : {false, true}) {
      const Outcome expected = run(scan_kernels_portable, residual, delta, skip, cutoff, room, adding);
      BOOST_TEST_REQUIRE(expected.found.back() == guard);
      for (const ScanKernels* set : sets)
        BOOST_TEST_REQUIRE((run(*set, residual, delta, skip, cutoff, room, adding) == expected), set->name);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_portable_set_finds_what_it_should) {
  std::vector<float> residual{0.0f, 1.0f, -2.0f, 0.5f};
  const std::vector<float> delta{0.25f, 0.0f, 1.0f, -1.5f};
  std::vector<std::uint32_t> found(4, 99);
  const std::size_t count = scan_kernels_portable.add_and_collect(
      residual.data(), delta.data(), 4, std::bit_cast<std::uint32_t>(1.0f), found.data(), 2);
  BOOST_TEST(count == 3u);
  BOOST_TEST((found == std::vector<std::uint32_t>{1, 2, 99, 99}));
  BOOST_TEST((residual == std::vector<float>{0.25f, 1.0f, -1.0f, -1.0f}));
}

BOOST_AUTO_TEST_SUITE_END()
