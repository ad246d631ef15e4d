// Payloads that are decoded as they come, on a stream of their own: entries are those of the host's decoder, room goes
// round, and what cannot be begun is left to others.
#include "runtime/training/device_arrivals.h"

#include <boost/test/unit_test.hpp>

#include "tests/gpu/target.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::gpu;
using compress::SparseUpdate;

BOOST_AUTO_TEST_SUITE(gpu_device_arrivals)

namespace {

struct Arriving {
  explicit Arriving(std::uint64_t seed)
      : prng(seed), target(seed), arrivals(DeviceArrivals::create(*target.gpu, layout).value()) {}

  std::shared_ptr<const Bytes> payload_of(const SparseUpdate& update) {
    return std::make_shared<const Bytes>(compress::encode(layout, update));
  }
  std::shared_ptr<const Bytes> drawn(std::uint32_t entries) {
    return payload_of(compress::random_update(prng, layout.params(), entries, 1 << 20));
  }
  // By the weights' stream, as their user reads them.
  void check_found(const Bytes& payload) {
    const DeviceUpdate* found = arrivals.find(payload);
    BOOST_TEST_REQUIRE(found != nullptr);
    const SparseUpdate expected = compress::decode(layout, payload).value();
    SparseUpdate read;
    read.index.resize(found->count);
    read.negative.resize(found->count);
    BOOST_TEST_REQUIRE(target.gpu->copy_out(read.index.data(), found->index.data(), found->count * 4).ok());
    BOOST_TEST_REQUIRE(target.gpu->copy_out(read.negative.data(), found->negative.data(), found->count).ok());
    BOOST_TEST((read.index == expected.index && read.negative == expected.negative));
  }

  Prng prng;
  ParamLayout layout = compress::layout_of({3000, 50000, 11});
  Target target;
  DeviceArrivals arrivals;
};

}  // namespace

BOOST_AUTO_TEST_CASE(all_that_came_is_found_until_more_is_collected) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Arriving here(seed);
    std::vector<std::shared_ptr<const Bytes>> before;
    std::size_t most = 0;
    for (int step = 0; step < 8; ++step) {
      std::vector<std::shared_ptr<const Bytes>> payloads;
      for (std::uint64_t some = here.prng.below(4); some > 0; --some)
        payloads.push_back(here.drawn(1 + static_cast<std::uint32_t>(here.prng.below(300))));
      for (const auto& payload : payloads) here.arrivals.begin(payload);
      BOOST_TEST_REQUIRE(here.arrivals.collect().ok());
      for (const auto& payload : payloads) here.check_found(*payload);
      for (const auto& payload : before) BOOST_TEST(here.arrivals.find(*payload) == nullptr);
      before = std::move(payloads);
      if (step == 3) most = here.arrivals.memory_bytes();
    }
    BOOST_TEST(here.arrivals.memory_bytes() < 3 * most + (1 << 16));
  }
}

// The updates have more than one segment and arrive while entries of the time before are still to be read.
BOOST_AUTO_TEST_CASE(what_comes_meanwhile_leaves_alone_what_was_found) {
  Arriving here(4);
  const auto first = here.drawn(20'000 / 2);
  here.arrivals.begin(first);
  BOOST_TEST_REQUIRE(here.arrivals.collect().ok());
  const auto second = here.drawn(10'000);
  here.arrivals.begin(second);
  here.check_found(*first);
  BOOST_TEST(here.arrivals.find(*second) == nullptr);
  BOOST_TEST_REQUIRE(here.arrivals.collect().ok());
  here.check_found(*second);
}

BOOST_AUTO_TEST_CASE(what_is_too_much_is_left_to_others) {
  Arriving here(5);
  const auto much = here.drawn(13'300), more = here.drawn(10);  // a quarter of the parameters is 13,252
  here.arrivals.begin(much);
  here.arrivals.begin(more);
  BOOST_TEST_REQUIRE(here.arrivals.collect().ok());
  here.check_found(*much);
  BOOST_TEST(here.arrivals.find(*more) == nullptr);
  here.arrivals.begin(more);
  BOOST_TEST_REQUIRE(here.arrivals.collect().ok());
  here.check_found(*more);

  std::vector<std::shared_ptr<const Bytes>> small;
  for (int i = 0; i < 300; ++i) small.push_back(here.drawn(1));
  for (const auto& payload : small) here.arrivals.begin(payload);
  BOOST_TEST_REQUIRE(here.arrivals.collect().ok());
  here.check_found(*small[255]);
  BOOST_TEST(here.arrivals.find(*small[256]) == nullptr);
}

BOOST_AUTO_TEST_CASE(what_is_damaged_is_not_found) {
  Arriving here(6);
  const auto sound = here.drawn(50), cut = std::make_shared<const Bytes>(sound->begin(), sound->end() - 1);
  const auto headless = std::make_shared<const Bytes>(Bytes{0xff, 0xff});
  here.arrivals.begin(headless);
  here.arrivals.begin(sound);
  BOOST_TEST_REQUIRE(here.arrivals.collect().ok());
  here.check_found(*sound);
  BOOST_TEST(here.arrivals.find(*headless) == nullptr);
  // Only the decoder finds the fault of this payload, and it reports the fault once.
  here.arrivals.begin(sound);
  here.arrivals.begin(cut);
  const Result<void> told = here.arrivals.collect();
  BOOST_TEST_REQUIRE(!told.ok());
  BOOST_TEST((told.error().code == Errc::corrupt));
  BOOST_TEST((here.arrivals.find(*cut) == nullptr && here.arrivals.find(*sound) == nullptr));
  BOOST_TEST(here.arrivals.collect().ok());
}

BOOST_AUTO_TEST_CASE(without_memory_nothing_is_begun) {
  if (on_device()) return;
  Arriving here(7);
  set_emulated_memory(1);
  const auto payload = here.drawn(50);
  here.arrivals.begin(payload);
  set_emulated_memory(0);
  BOOST_TEST(here.arrivals.collect().ok());
  BOOST_TEST(here.arrivals.find(*payload) == nullptr);
  here.arrivals.begin(payload);
  BOOST_TEST(here.arrivals.collect().ok());
  here.check_found(*payload);
}

BOOST_AUTO_TEST_SUITE_END()
