// The largest model there can be, 2^31 - 1 parameters, all of whose kernels index with 31 bits: on a GPU with memory
// for it. The emulation walks the same course with a model that it can hold.
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <set>

#include "gpu/compress/compressor.h"
#include "runtime/base/prng.h"
#include "tests/gpu/target.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_limit)

namespace {

template <class T>
T value_at(const Target& target, const DeviceArray<T>& array, std::size_t at) {
  T value{};
  BOOST_TEST_REQUIRE(target.gpu->copy_out(&value, array.data() + at, sizeof value).ok());
  return value;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_largest_model) {
  const Target target(3);
  std::uint32_t params = 700'001;
  if (on_device()) {
    const std::uint64_t needed = std::uint64_t{26} << 30;
    if (target.gpu->describe().value().free_bytes < needed) {
      BOOST_TEST_MESSAGE("this GPU has no 26 GiB free: 2^31 - 1 parameters were not tried");
      return;
    }
    params = 0x7fff'ffff;
  }
  // Changes at both ends, at the edges of tiles, and anywhere; nothing elsewhere.
  Prng prng(31);
  std::set<std::uint32_t> places{0, 1, 8191, 8192, params / 2, params - 8193, params - 2, params - 1};
  while (places.size() < 3000) places.insert(static_cast<std::uint32_t>(prng.below(params)));
  const std::vector<std::uint32_t> expected(places.begin(), places.end());

  const ParamLayout layout = compress::layout_of({1000, params - 1000});
  DeviceCompressor compressor = DeviceCompressor::create(*target.gpu, layout, {.density = 3000.0 / params}).value();
  BOOST_TEST_REQUIRE(compressor.target_entries() == 3000u);
  const auto change = DeviceArray<float>::create(*target.gpu, params, "a test").value();
  target.table().fill(target.device(), change.data(), 0, std::size_t{params} * sizeof(float));
  for (const std::uint32_t at : expected) {
    const float value = at % 2 == 0 ? 0.25f : -0.25f;
    target.table().copy_in(target.device(), change.data() + at, &value, sizeof value);
  }
  const auto weights = DeviceArray<std::int32_t>::create(*target.gpu, params, "a test").value();
  target.table().fill(target.device(), weights.data(), 0, std::size_t{params} * sizeof(std::int32_t));
  DeviceUpdate update;
  for (std::uint32_t round = 1; round <= 3; ++round) {
    BOOST_TEST_REQUIRE(compressor.absorb(change, update).ok());
    BOOST_TEST_REQUIRE(update.count == 3000u);
    BOOST_TEST(update.step == 1 << 22);
    std::vector<std::uint32_t> index(update.count);
    BOOST_TEST_REQUIRE(update.index.read(index.data(), index.size()).ok());
    BOOST_TEST((index == expected));
    const Entries entries = update.entries();
    target.table().apply(target.device(), &entries, weights.data(), nullptr, 1);
    for (const std::uint32_t at : {expected.front(), expected.back(), expected[1500]}) {
      const std::int32_t moved = static_cast<std::int32_t>(round << 22);
      BOOST_TEST(value_at(target, weights, at) == (at % 2 == 0 ? moved : -moved));
    }
  }
  BOOST_TEST(compressor.second_looks() == 1u);  // the first, which has no threshold to go by
  // All weights together are what was applied: the sum over all of them is the sum over the entries.
  const auto lanes = DeviceArray<std::uint32_t>::create(*target.gpu, 4, "a test").value();
  target.table().fill(target.device(), lanes.data(), 0, 4 * sizeof(std::uint32_t));
  const Entries entries = update.entries();
  for (int round = 0; round < 3; ++round)
    target.table().fingerprint_entries(target.device(), &entries, 99, lanes.data());
  target.table().fingerprint_weights(target.device(), weights.data(), params, 99, lanes.data() + 2);
  std::uint32_t got[4];
  BOOST_TEST_REQUIRE(lanes.read(got, 4).ok());
  BOOST_TEST(got[0] == got[2]);
  BOOST_TEST(got[1] == got[3]);
}

BOOST_AUTO_TEST_SUITE_END()
