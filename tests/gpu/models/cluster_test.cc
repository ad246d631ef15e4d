// Peers on GPUs and on processors train one model together, in virtual time: equal digests, and before every step and
// every evaluation weights on the GPU that are the replica's, with what is expected of others. So do they with Muon in
// rounds as long as the delay.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "runtime/training/device_trainer.h"
#include "runtime/training/model_trainer.h"
#include "tests/gpu/target.h"
#include "tests/sim/support.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_cluster)

namespace {

// A DeviceTrainer whose every float is compared with what a view on the host would show.
class Watched final : public Trainer {
 public:
  struct Looks {
    std::uint64_t compared = 0, overlays = 0, arrived = 0;
  };

  Watched(std::unique_ptr<DeviceTrainer> made, int grid_bits, Looks& looks)
      : made_(std::move(made)), grid_bits_(grid_bits), looks_(looks) {}

  const ParamLayout& layout() const override { return made_->layout(); }
  LargeVector<std::int32_t> initial_weights() const override { return made_->initial_weights(); }
  void arrived(const std::shared_ptr<const Bytes>& payload) override {
    ++looks_.arrived;
    made_->arrived(payload);
  }
  void follow(Replica& replica) override { made_->follow(replica); }
  void expect(Replica& replica, InFlightView& in_flight) override {
    InFlightView on_host = in_flight;
    made_->expect(replica, in_flight);
    look(replica, &on_host);
  }
  void lift(Replica& replica, InFlightView& in_flight) override {
    made_->lift(replica, in_flight);
    look(replica, nullptr);
  }
  bool keeps_weights() const override { return made_->keeps_weights(); }
  bool takes_batches() const override { return made_->takes_batches(); }
  std::span<const float> residual() const override { return made_->residual(); }
  Bytes optimizer_state() const override { return made_->optimizer_state(); }
  Result<void> restore(std::span<const float> residual, BytesView state) override {
    return made_->restore(residual, state);
  }
  compress::CompressorStats compression() const override { return made_->compression(); }
  MemoryUse memory() const override { return made_->memory(); }
  void set_parallel(Parallel* parallel) override { made_->set_parallel(parallel); }
  Parallel& parallel() override { return made_->parallel(); }
  StepResult step(const StepPlan& plan) override { return made_->step(plan); }
  models::Evaluation evaluate(std::span<const float> weights, std::uint32_t rows_max) override {
    return made_->evaluate(weights, rows_max);
  }

 private:
  // The peer's own weights are left to wait.
  void look(const Replica& replica, InFlightView* in_flight) {
    const Replica applied = replica;
    const std::vector<float> there = made_->device_view().value();
    const std::vector<float> weights = models::to_floats(applied.weights(), grid_bits_);
    std::vector<float> here = weights;
    Serial alone;
    if (in_flight != nullptr)
      in_flight->refresh(applied.weights(), {here, std::ldexp(1.0f, -grid_bits_)}, alone);
    BOOST_TEST_REQUIRE((there == here));
    ++looks_.compared;
    looks_.overlays += here != weights;
  }

  std::unique_ptr<DeviceTrainer> made_;
  int grid_bits_;
  Looks& looks_;
};

// Four peers, two of them on GPUs, train to the end.
void check_agreement(const RunConfig& config) {
  sim::ClusterOptions options = test::lan(4);
  options.network = sim::NetworkModel::preset("home").value();  // updates are on their way for a step or two
  Watched::Looks looks;
  options.trainer = [&](std::size_t i, const NodeOptions& node) -> Result<std::unique_ptr<Trainer>> {
    const std::uint64_t seed = sampling_seed(config, node.node);
    if (i % 2 == 0)
      return std::unique_ptr<Trainer>(ModelTrainer::create(config, test::small_data(), node.shard, seed).value());
    auto made = DeviceTrainer::create(target_group(1, i), config, test::small_data(), node.shard, seed).value();
    return std::unique_ptr<Trainer>(std::make_unique<Watched>(std::move(made), config.grid_bits, looks));
  };
  const auto cluster = test::make_cluster(config, options);
  std::uint64_t applied = 0, asked = 0;
  while (!cluster->all_complete() && cluster->now() < TimePoint{120s}) {
    cluster->run_until(cluster->now() + 7ms);
    for (const std::size_t i : {1, 3}) applied += cluster->node(i)->replica().nothing_pending();
    asked += 2;
  }
  BOOST_TEST(cluster->all_complete());
  test::require_all_equal(*cluster, options.nodes);
  BOOST_TEST(looks.compared > 50u);
  BOOST_TEST(looks.overlays > 10u);
  // Each update of another is told at once.
  std::uint64_t taken = 0;
  for (const std::size_t i : {1, 3})
    taken += cluster->node(i)->status(cluster->now()).training.updates_of_others;
  BOOST_TEST(taken > 50u);
  BOOST_TEST(looks.arrived == taken);
  // Nobody waits for the weights on the host, and still they follow: while steps are computed.
  BOOST_TEST(applied > asked / 2);
}

}  // namespace

BOOST_AUTO_TEST_CASE(peers_on_gpus_and_on_processors_agree) {
  if (!has_products(Target())) return;
  RunConfig config = test::small_run(3000);
  config.optimizer.kind = "adamw";
  config.rate = 0.002;
  check_agreement(config);
}

BOOST_AUTO_TEST_CASE(rounds_of_muon_agree) {
  if (!has_products(Target())) return;
  RunConfig config = test::small_run(12'000);
  config.model.hidden = {8, 8};
  config.optimizer.kind = "muon";
  config.rate = 0.02;
  config.round_rules.local_steps = 0;  // as long as the delay
  check_agreement(config);
}

BOOST_AUTO_TEST_SUITE_END()
