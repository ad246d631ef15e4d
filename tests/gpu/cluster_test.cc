// Peers on GPUs and on processors train one model together, in virtual time: equal digests, and at every moment a GPU's
// view that is the host's, with what is expected of others, but where it has yet to follow.
#include <boost/test/unit_test.hpp>

#include "runtime/device_trainer.h"
#include "runtime/model_trainer.h"
#include "tests/gpu/target.h"
#include "tests/sim/support.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_cluster)

namespace {

struct Looks {
  std::uint64_t compared = 0, overlays = 0;
};

// Compares the two views of one peer, if it has trained at all.
void look(const DeviceTrainer& trainer, const Replica& replica, Looks& looks) {
  const FollowedView& followed = trainer.followed();
  if (followed.everywhere()) return;
  std::vector<float> there = trainer.device_view().value();
  const std::span<const float> here = followed.values();
  for (const compress::SharedUpdate& update : followed.changed())
    for (const std::uint32_t i : update->index) there[i] = here[i];
  BOOST_TEST_REQUIRE(std::equal(there.begin(), there.end(), here.begin(), here.end()));
  ++looks.compared;
  const std::span<const std::int32_t> weights = replica.weights();
  const bool shows_weights = std::equal(weights.begin(), weights.end(), here.begin(), [&](std::int32_t w, float value) {
    return static_cast<float>(w) * followed.unit() == value;
  });
  looks.overlays += !shows_weights && replica.refreshed();
}

}  // namespace

BOOST_AUTO_TEST_CASE(peers_on_gpus_and_on_processors_agree) {
  if (!has_products(Target())) return;
  RunConfig config = test::small_run(3000);
  config.optimizer.kind = "adamw";
  config.rate = 0.002;
  sim::ClusterOptions options = test::lan(4);
  options.network = sim::NetworkModel::preset("home").value();  // updates are on their way for a step or two
  std::vector<const DeviceTrainer*> on_gpu(options.nodes);
  options.trainer = [&](std::size_t i, const NodeOptions& node) -> Result<std::unique_ptr<Trainer>> {
    const std::uint64_t seed = sampling_seed(config, node.node);
    if (i % 2 == 0)
      return std::unique_ptr<Trainer>(ModelTrainer::create(config, test::small_data(), node.shard, seed).value());
    auto made = DeviceTrainer::create(target_group(1, i), config, test::small_data(), node.shard, seed).value();
    on_gpu[i] = made.get();
    return std::unique_ptr<Trainer>(std::move(made));
  };
  const auto cluster = test::make_cluster(config, options);
  Looks looks;
  while (!cluster->all_complete() && cluster->now() < TimePoint{120s}) {
    cluster->run_until(cluster->now() + 7ms);
    for (const std::size_t i : {1, 3})
      if (cluster->node(i)->training()) look(*on_gpu[i], cluster->node(i)->replica(), looks);
  }
  BOOST_TEST(cluster->all_complete());
  test::require_all_equal(*cluster, options.nodes);
  BOOST_TEST(looks.compared > 50u);
  BOOST_TEST(looks.overlays > 10u);
}

BOOST_AUTO_TEST_SUITE_END()
