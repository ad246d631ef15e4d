// A replica on one GPU and on several beside one on the host that has the same in another way: after anything that can
// happen to weights and to what is expected of others, every float is that of the host, on every GPU.
#include "runtime/training/device_view.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>

#include "models/families/model.h"
#include "tests/gpu/models/drawn_batch.h"
#include "tests/gpu/target.h"
#include "tests/unit/compress/generated.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;
using namespace rumor::gpu;
using compress::SparseUpdate;

BOOST_AUTO_TEST_SUITE(gpu_device_view)

namespace {

constexpr int grid_bits = 24;
constexpr std::uint8_t peers = 4;

LargeVector<std::int32_t> any_weights(Prng& prng, std::uint32_t params) {
  LargeVector<std::int32_t> weights(params);
  for (std::int32_t& weight : weights) weight = static_cast<std::int32_t>(prng.next());
  return weights;
}

// The state of a peer that computes on the host alone: the reference.
struct OnHost {
  Replica replica;
  InFlightView in_flight;
  std::vector<float> view;
  Serial alone;

  OnHost(const ParamLayout& layout, const LargeVector<std::int32_t>& start, double weight)
      : replica(test::some_run(), layout, start),
        in_flight(layout, weight),
        view(layout.params()) {}
  std::span<const float> shown(bool lifted) {
    const compress::FloatView floats{view, std::ldexp(1.0f, -grid_bits)};
    if (!replica.refresh(floats, alone)) models::to_floats(replica.weights(), grid_bits, view);
    lifted ? in_flight.lift(replica.weights(), floats, alone) : in_flight.refresh(replica.weights(), floats, alone);
    return view;
  }
};

// The state of a peer with GPUs.
struct OnDevice {
  std::unique_ptr<GpuGroup> gpus;
  SplitModel model;
  DeviceCodec codec;
  Replica replica;
  InFlightView in_flight;
  DeviceView view;
  DeviceUpdate made;  // of a step that was not taken
  Bytes payload;

  OnDevice(std::unique_ptr<GpuGroup> group, const models::ModelConfig& config, const ParamLayout& layout,
           const LargeVector<std::int32_t>& start, double weight)
      : gpus(std::move(group)),
        model(SplitModel::create(*gpus, config, Precision::fp32).value()),
        codec(gpus->first(), layout),
        replica(test::some_run(), layout, start),
        in_flight(layout, weight),
        view(DeviceView::create(gpus->first(), model, codec, layout, grid_bits).value()) {}

  // Every GPU's.
  std::vector<std::vector<float>> shown(bool lifted) {
    view.follow(replica, made, payload);
    lifted ? view.lift(in_flight) : view.expect(in_flight);
    const Result<void> told = view.told();
    BOOST_TEST_REQUIRE(told.ok());
    std::vector<std::vector<float>> all;
    for (std::size_t i = 0; i < gpus->size(); ++i) {
      all.emplace_back(view.floats().size());
      BOOST_TEST_REQUIRE((i == 0 ? view.floats() : model.copy(i)).read(all[i].data(), all[i].size()).ok());
    }
    return all;
  }
};

struct Applied {
  gossip::UpdateHeader header;
  SparseUpdate update;
  std::shared_ptr<const Bytes> payload;
};

struct Both {
  Prng prng;
  ParamLayout layout;
  LargeVector<std::int32_t> start;
  OnHost host;
  OnDevice device;
  std::vector<Applied> applied;
  std::uint64_t seq = 0, period = 0;
  std::uint64_t overlays = 0, compared = 0, anew = 0, backs = 0;

  Both(std::uint64_t seed, std::size_t gpus, const models::ModelConfig& config, double weight)
      : Both(seed, gpus, config, weight, models::make_model(config).value()->layout()) {}
  Both(std::uint64_t seed, std::size_t gpus, const models::ModelConfig& config, double weight, const ParamLayout& made)
      : prng(seed),
        layout(made),
        start(any_weights(prng, layout.params())),
        host(layout, start, weight),
        device(target_group(gpus, seed), config, layout, start, weight) {}

  SparseUpdate drawn() {
    SparseUpdate update = compress::any_update(prng, layout);
    if (!prng.chance(1, 6) && update.index.size() > layout.params() / 8)
      update = compress::random_update(prng, layout.params(), layout.params() / 20, 1 << 20);
    if (prng.chance(1, 3)) compress::give_own_steps(prng, layout, update);
    return update;
  }

  Applied name(SparseUpdate update) {
    Applied one{{}, std::move(update), nullptr};
    one.header.key = {test::stream(9), ++seq};
    one.header.fingerprint = host.replica.fingerprinter().of_update(layout, one.update);
    one.payload = std::make_shared<const Bytes>(compress::encode(layout, one.update));
    return one;
  }

  // Now and then somebody has only the entries.
  void arrive() {
    applied.push_back(name(drawn()));
    const Applied& one = applied.back();
    for (Replica* replica : {&host.replica, &device.replica})
      BOOST_TEST_REQUIRE(
          replica->apply(one.header, one.update, prng.chance(1, 8) ? nullptr : one.payload).ok());
    if (prng.chance(2, 3)) device.view.arrived(one.payload);
  }

  // Mostly the GPU has just made it; after a restart it has not.
  void send() {
    applied.push_back(name(drawn()));
    Applied& one = applied.back();
    if (!prng.chance(1, 5)) {
      BOOST_TEST_REQUIRE(device.made.write_entries(device.gpus->first(), one.update).ok());
      device.payload = *one.payload;
    }
    std::vector<NodeId> live;
    for (std::uint8_t peer = 1; peer <= peers; ++peer)
      if (prng.chance(2, 3)) live.push_back(test::node(peer));
    period += 1 + prng.below(2);
    host.in_flight.sent(host.replica.apply_own(one.header, one.update), period, live);
    device.in_flight.sent(device.replica.apply_own(one.header, one.update, one.payload), period, live);
  }

  void take_back() {
    if (applied.empty()) return;
    const std::size_t which = prng.below(applied.size());
    const Applied one = applied[which];
    applied.erase(applied.begin() + static_cast<std::ptrdiff_t>(which));
    for (Replica* replica : {&host.replica, &device.replica})
      replica->take_back(one.header, one.update, prng.chance(1, 8) ? nullptr : one.payload);
    ++backs;
  }

  void hear() {
    const NodeId peer = test::node(static_cast<std::uint8_t>(1 + prng.below(peers)));
    const std::uint64_t of = prng.chance(1, 4) ? period : period - prng.below(std::min<std::uint64_t>(period + 1, 5));
    const bool gone = prng.chance(1, 8);
    for (InFlightView* in_flight : {&host.in_flight, &device.in_flight})
      gone ? in_flight->gone(peer) : in_flight->answered(peer, of);
  }

  // From a checkpoint or from another peer: other weights altogether.
  void restore() {
    ReplicaState state = host.replica.state();
    state.weights = any_weights(prng, layout.params());
    state.fingerprint = host.replica.fingerprinter().of_weights(state.weights);
    for (Replica* replica : {&host.replica, &device.replica}) BOOST_TEST_REQUIRE(replica->restore(state).ok());
    applied.clear();
  }

  void something() {
    const std::uint64_t what = prng.below(40);
    if (what < 16) return arrive();
    if (what < 24) return send();
    if (what < 34) return hear();
    if (what < 37) return take_back();
    if (what < 39) return void(device.replica.apply_some(1 + prng.below(200)));
    restore();
  }

  void compare(bool lifted) {
    anew += !device.replica.refreshed() && device.replica.recent().empty();
    const std::span<const float> here = host.shown(lifted);
    for (const std::vector<float>& there : device.shown(lifted))
      BOOST_TEST_REQUIRE(std::memcmp(there.data(), here.data(), here.size_bytes()) == 0);
    BOOST_TEST(device.replica.fingerprint() == host.replica.fingerprint());
    if (prng.chance(1, 3)) BOOST_TEST_REQUIRE(device.view.verify().ok());
    const std::span<const std::int32_t> weights = host.replica.weights();
    const bool plain = std::equal(weights.begin(), weights.end(), here.begin(), [&](std::int32_t weight, float value) {
      return static_cast<float>(weight) * std::ldexp(1.0f, -grid_bits) == value;
    });
    BOOST_TEST((plain || !lifted));
    overlays += !plain;
    ++compared;
  }
};

models::ModelConfig some_mlp() {
  models::ModelConfig config = test_models().front();
  config.inputs = 40;
  config.hidden = {17};
  return config;
}

}  // namespace

BOOST_AUTO_TEST_CASE(whatever_happens_the_floats_are_those_of_the_host) {
  std::uint64_t overlays = 0, backs = 0, anew = 0, compared = 0;
  for (std::uint64_t seed = 1; seed <= 9; ++seed) {
    const std::size_t gpus = 1 + seed % 3;
    if (gpus > 1 && !target_group(gpus)) continue;
    Both both(seed, gpus, seed % 4 == 0 ? test_models().back() : some_mlp(), seed % 2 == 0 ? 0.5 : 1.0);
    for (int step = 0; step < 60; ++step) {
      for (std::uint64_t some = both.prng.below(5); some > 0; --some) both.something();
      both.compare(both.prng.chance(1, 6));
    }
    overlays += both.overlays;
    backs += both.backs;
    anew += both.anew;
    compared += both.compared;
  }
  BOOST_TEST_MESSAGE(overlays << " overlays, " << backs << " taken back, " << anew << " anew, of " << compared);
  BOOST_TEST(overlays > compared / 3);
  BOOST_TEST((backs > 20 && anew > 5));
}

// A share comes on with an own update and off with an answer, also while the weights alone are shown.
BOOST_AUTO_TEST_CASE(answers_that_come_during_an_evaluation_take_their_shares_off) {
  for (const std::size_t gpus : {1u, 2u}) {
    if (gpus > 1 && !target_group(gpus)) continue;
    Both both(40 + gpus, gpus, some_mlp(), 1.0);
    both.compare(false);
    for (int round = 0; round < 8; ++round) {
      both.send();
      both.compare(false);
      both.compare(true);
      for (std::uint8_t peer = 1; peer <= peers; ++peer)
        for (InFlightView* in_flight : {&both.host.in_flight, &both.device.in_flight})
          in_flight->answered(test::node(peer), both.period);
      both.compare(false);
    }
    BOOST_TEST(both.device.in_flight.in_flight() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(more_than_is_kept_in_mind_is_sent_anew) {
  Both both(50, 1, some_mlp(), 0.5);
  both.compare(false);
  both.send();
  for (int update = 0; update < 40; ++update) both.arrive();
  BOOST_TEST(!both.device.replica.refreshed());
  both.compare(false);
  both.arrive();
  both.compare(false);
  BOOST_TEST(both.overlays > 0u);
}

// An update that arrived before is not sent again when a step needs it; only the steps of its tensors are.
BOOST_AUTO_TEST_CASE(what_came_before_is_not_sent_again) {
  if (on_device()) return;
  Both both(54, 1, test_models().back(), 0.5);
  both.compare(false);
  for (const bool told : {false, true}) {
    Applied one = both.name(compress::random_update(both.prng, both.layout.params(), both.layout.params() / 5, 7));
    for (Replica* replica : {&both.host.replica, &both.device.replica})
      BOOST_TEST_REQUIRE(replica->apply(one.header, one.update, one.payload).ok());
    if (told) both.device.view.arrived(one.payload);
    const std::uint64_t before = emulated_bytes_in();
    both.device.view.follow(both.device.replica, both.device.made, both.device.payload);
    BOOST_TEST((emulated_bytes_in() - before > one.payload->size()) != told);
    both.compare(false);
  }
}

// In the emulation memory can be held back: then the view is told to have failed, once, and is right again afterwards.
BOOST_AUTO_TEST_CASE(what_fails_is_told_and_made_good) {
  if (on_device()) return;
  Both both(51, 2, some_mlp(), 0.5);
  both.compare(false);
  both.send();
  both.arrive();
  set_emulated_memory(1);
  both.device.view.follow(both.device.replica, both.device.made, both.device.payload);
  both.device.view.expect(both.device.in_flight);
  set_emulated_memory(0);
  const Result<void> told = both.device.view.told();
  BOOST_TEST_REQUIRE(!told.ok());
  BOOST_TEST((told.error().code == Errc::limit));
  BOOST_TEST(both.device.view.told().ok());
  both.arrive();
  both.compare(false);
  both.compare(true);
}

// Bytes that the GPU reads otherwise are said to be so. No update of a peer comes so far: the host has read it before.
BOOST_AUTO_TEST_CASE(a_payload_that_is_cut_is_no_update) {
  Both both(52, 1, some_mlp(), 0.5);
  both.compare(false);
  Applied one = both.name(compress::random_update(both.prng, both.layout.params(), 30, 7));
  Bytes cut(one.payload->begin(), one.payload->end() - 1);
  BOOST_TEST_REQUIRE(
      both.device.replica.apply(one.header, one.update, std::make_shared<const Bytes>(std::move(cut))).ok());
  BOOST_TEST_REQUIRE(both.host.replica.apply(one.header, one.update).ok());
  both.device.view.follow(both.device.replica, both.device.made, both.device.payload);
  const Result<void> told = both.device.view.told();
  BOOST_TEST_REQUIRE(!told.ok());
  BOOST_TEST((told.error().code == Errc::corrupt));
  both.compare(false);
}

BOOST_AUTO_TEST_CASE(weights_that_are_another_replicas_are_found_out) {
  Both both(53, 1, some_mlp(), 0.5);
  both.send();
  both.compare(false);
  BOOST_TEST(both.device.view.verify().ok());
  Replica other(test::some_run(), both.layout, LargeVector<std::int32_t>(both.layout.params(), 1));
  BOOST_TEST(!other.hand_over());
  both.device.view.follow(other, both.device.made, both.device.payload);
  const Result<void> equal = both.device.view.verify();
  BOOST_TEST_REQUIRE(!equal.ok());
  BOOST_TEST(equal.error().text.find("not those of the replica") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
