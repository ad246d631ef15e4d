// Weights on the device against compress/payload/apply.h and runtime/replica/fingerprint.h: whatever is added, by
// whatever factor, and taken off again.
#include "gpu/compress/device_replica.h"

#include <boost/test/unit_test.hpp>

#include "compress/payload/apply.h"
#include "models/families/model.h"
#include "runtime/replica/fingerprint.h"
#include "tests/gpu/target.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::gpu;
using compress::SparseUpdate;

BOOST_AUTO_TEST_SUITE(gpu_device_replica)

namespace {

constexpr int grid_bits = 24;

// The reference: entry by entry.
void add_here(const ParamLayout& layout, const SparseUpdate& update, std::int32_t factor,
              std::vector<std::int32_t>& weights) {
  for (const compress::StepRun& run : compress::step_runs(layout, update))
    for (std::size_t e = run.first; e < run.first + run.count; ++e) {
      const std::uint32_t amount = static_cast<std::uint32_t>(run.step) * static_cast<std::uint32_t>(factor);
      auto& weight = weights[update.index[e]];
      weight = static_cast<std::int32_t>(static_cast<std::uint32_t>(weight) +
                                         (update.negative[e] != 0 ? 0 - amount : amount));
    }
}

DeviceUpdate there(const Target& target, const SparseUpdate& update) {
  DeviceUpdate entries;
  BOOST_TEST_REQUIRE(entries.write_entries(*target.gpu, update).ok());
  return entries;
}

std::vector<float> read(const DeviceReplica& replica) {
  std::vector<float> floats(replica.floats().size());
  BOOST_TEST_REQUIRE(replica.floats().read(floats.data(), floats.size()).ok());
  return floats;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_added_shows_and_comes_off_to_the_bit) {
  Prng prng(61);
  RunId run;
  for (std::uint8_t& byte : run.bytes) byte = static_cast<std::uint8_t>(prng.below(256));
  const Fingerprinter fingerprinter(run);
  for (std::uint64_t order = 0; order < 20; ++order) {
    const Target target(order);
    const ParamLayout layout =
        prng.chance(1, 4) ? compress::large_layout(prng) : compress::random_layout(prng, 12, 3000);
    std::vector<std::int32_t> weights(layout.params());
    for (std::int32_t& weight : weights) weight = static_cast<std::int32_t>(prng.next());
    DeviceReplica replica = DeviceReplica::create(*target.gpu, layout.params(), grid_bits).value();
    replica.write(weights);
    BOOST_TEST((read(replica) == models::to_floats(weights, grid_bits)));
    const std::vector<std::int32_t> before = weights;
    std::vector<SparseUpdate> updates;
    std::vector<std::int32_t> factors;
    for (int i = 0; i < 4; ++i) {
      updates.push_back(compress::any_update(prng, layout));
      if (prng.chance(1, 2)) compress::give_own_steps(prng, layout, updates.back());
      factors.push_back(static_cast<std::int32_t>(prng.between(-3, 3)));
      const DeviceUpdate entries = there(target, updates.back());
      const auto runs = compress::step_runs(layout, updates.back());
      const std::uint64_t sum = fingerprinter.of_weights(weights);
      BOOST_TEST_REQUIRE(replica.add(entries.placed(), runs, factors.back()).ok());
      add_here(layout, updates.back(), factors.back(), weights);
      BOOST_TEST((read(replica) == models::to_floats(weights, grid_bits)));
      const std::uint64_t after = fingerprinter.of_weights(weights);
      BOOST_TEST(replica.fingerprint(fingerprinter.seed()).value() == after);
      BOOST_TEST(replica.fingerprint_of(entries.placed(), runs, factors.back(), fingerprinter.seed()).value() ==
                 Fingerprinter::minus(after, sum));
    }
    for (const std::size_t i : {2u, 0u, 3u, 1u}) {
      const DeviceUpdate entries = there(target, updates[i]);
      const auto runs = compress::step_runs(layout, updates[i]);
      BOOST_TEST_REQUIRE(replica.add(entries.placed(), runs, -factors[i]).ok());
    }
    BOOST_TEST((read(replica) == models::to_floats(before, grid_bits)));
    BOOST_TEST(replica.fingerprint(fingerprinter.seed()).value() == fingerprinter.of_weights(before));
  }
}

BOOST_AUTO_TEST_CASE(all_weights_are_shown_as_on_the_host) {
  Prng prng(62);
  for (const std::uint32_t params : {0u, 1u, 255u, 1024u, 70'001u}) {
    const Target target(params);
    std::vector<std::int32_t> weights(params);
    for (std::int32_t& weight : weights) weight = static_cast<std::int32_t>(prng.next());
    const Guarded<std::int32_t> on_weights(target, weights, params % 3);
    const Guarded<float> on_view(target, params, params % 2);
    target.table().show(target.device(), on_weights.data(), params, on_view.data(), 0x1p-24f);
    BOOST_TEST((on_view.read() == models::to_floats(weights, 24)));
  }
}

BOOST_AUTO_TEST_CASE(entries_are_copied_and_room_is_kept) {
  Prng prng(63);
  const Target target;
  DeviceUpdate from, to;
  for (const std::uint32_t count : {300u, 0u, 1u, 299u}) {
    const SparseUpdate update = compress::random_update(prng, 400, count, 5);
    BOOST_TEST_REQUIRE(from.write_entries(*target.gpu, update).ok());
    BOOST_TEST_REQUIRE(to.copy_entries(*target.gpu, from).ok());
    SparseUpdate got{.step = count > 0 ? 5 : 0, .index = {}, .negative = {}, .tensor_step = {}};
    got.index.resize(to.count);
    got.negative.resize(to.count);
    BOOST_TEST_REQUIRE(to.index.read(got.index.data(), to.count).ok());
    BOOST_TEST_REQUIRE(to.negative.read(got.negative.data(), to.count).ok());
    BOOST_TEST((got == update));
    BOOST_TEST(to.index.size() == 300u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
