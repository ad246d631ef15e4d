#include "runtime/sim/dense_baseline.h"

#include <algorithm>
#include <bit>

#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

struct Baseline {
  std::unique_ptr<models::Model> model;
  std::unique_ptr<models::Optimizer> optimizer;
  std::vector<models::BatchSampler> samplers;
  std::vector<float> weights, gradient, sum;
  double clip = 0;

  // One synchronous step of all nodes; the gradients are added in node order.
  void step(double rate) {
    std::fill(sum.begin(), sum.end(), 0.0f);
    const float share = 1.0f / static_cast<float>(samplers.size());
    for (models::BatchSampler& sampler : samplers) {
      model->loss_and_gradient(weights, sampler.next(), gradient);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i] * share;
    }
    if (clip > 0) models::clip_by_norm(sum, clip);
    optimizer->step(sum, rate, gradient, weights);
    for (std::size_t i = 0; i < sum.size(); ++i) weights[i] += gradient[i];
  }
};

Result<Baseline> make(const RunConfig& config, const std::shared_ptr<const models::DataSet>& data,
                      const ClusterOptions& options) {
  models::ModelConfig shape = config.model;
  data->describe(shape);
  auto model = models::make_model(shape);
  if (!model) return model.error();
  Baseline b;
  b.model = std::move(model).value();
  const std::uint32_t params = b.model->layout().params();
  auto optimizer = models::make_optimizer(config.optimizer, params);
  if (!optimizer) return optimizer.error();
  b.optimizer = std::move(optimizer).value();
  b.clip = config.optimizer.clip;
  const auto count = static_cast<std::uint32_t>(options.nodes);
  for (std::uint32_t i = 0; i < count; ++i) {
    const models::Shard shard{i, count, config.seed, config.data.skew};
    if (auto exists = models::check_shard(*data, shard); !exists) return exists.error();
    b.samplers.emplace_back(data, shard, config.batch, mix64(options.seed * 1000 + i));
  }
  b.weights = Trainer::to_floats(
      options.start ? options.start->weights : models::initial_weights(*b.model, config.seed, config.grid_bits),
      config.grid_bits);
  b.gradient.assign(params, 0);
  b.sum.assign(params, 0);
  return b;
}

// Adds to `computed` what all nodes together compute meanwhile.
double step_seconds(const ClusterOptions& options, double bytes_moved, Prng& costs, double& computed) {
  std::int64_t slowest = 0;
  for (std::size_t i = 0; i < options.nodes; ++i) {
    const std::int64_t step = options.step_of(i).count();
    const std::int64_t takes = step + costs.between(-step / 10, step / 10);
    computed += static_cast<double>(takes) * 1e-6;
    slowest = std::max(slowest, takes);
  }
  const double rate = static_cast<double>(
      std::min(options.network.up_bytes_per_second, options.network.down_bytes_per_second));
  const double latencies =
      2.0 * static_cast<double>(options.nodes - 1) * to_seconds(options.network.latency_max);
  return static_cast<double>(slowest) * 1e-6 + bytes_moved / rate + latencies;
}

void describe(SimResult& r, const RunConfig& config, const Baseline& b, const ClusterOptions& options) {
  r.run_name = config.name;
  r.mode = config.mode;
  r.nodes = options.nodes;
  r.sim_seed = options.seed;
  r.params = b.weights.size();
  r.run_id = run_id(config, b.model->layout(), options.start.get()).hex();
  r.dense_update_bytes = r.update_bytes_mean = 4.0 * static_cast<double>(r.params);
  r.ratio = r.density = r.copies_per_delivery = 1;
  r.bits_per_entry = r.bound_bits_per_entry = 32;
  r.identical = true;
}

}  // namespace

Result<SimResult> run_dense_baseline(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                                     const ClusterOptions& options, const Progress& progress) {
  auto made = make(config, data, options);
  if (!made) return made.error();
  Baseline& b = *made;
  SimResult r;
  describe(r, config, b, options);
  Prng costs = Prng::named(options.seed, "steps");
  const double nodes = static_cast<double>(options.nodes);
  const double moved = 2.0 * (nodes - 1) / nodes * r.dense_update_bytes;
  double computed = 0;
  const std::uint64_t per_step = std::uint64_t{config.batch} * options.nodes;
  const std::uint64_t steps = (config.samples + per_step - 1) / per_step;
  for (std::uint64_t s = 0; s <= steps && !r.stopped_early; ++s) {
    if (s == steps || s % std::max<std::uint64_t>(1, steps / options.curve_points) == 0) {
      const models::Evaluation now = evaluate_on_test(*b.model, *data, b.weights, UINT32_MAX);
      r.curve.push_back({r.samples, r.virtual_seconds, now.loss, now.accuracy, r.sent_bytes_per_node, 0, 1});
      r.loss = now.loss;
      r.accuracy = now.accuracy;
      r.stopped_early =
          progress && !progress(r.curve.back(), static_cast<double>(s) / static_cast<double>(steps));
    }
    if (s == steps) break;
    b.step(config.rate * config.schedule.factor(static_cast<double>(s) / static_cast<double>(steps)));
    r.samples += per_step;
    r.updates += options.nodes;
    r.sent_bytes_per_node += moved;
    r.virtual_seconds += step_seconds(options, moved, costs, computed);
  }
  r.received_bytes_per_node = r.sent_bytes_per_node;
  if (r.virtual_seconds > 0) r.idle_fraction = 1 - computed / (r.virtual_seconds * nodes);
  for (std::size_t i = 0; i < options.nodes; ++i)
    r.traffic.push_back({str("node ", i), static_cast<std::uint64_t>(r.sent_bytes_per_node),
                         static_cast<std::uint64_t>(r.received_bytes_per_node)});
  // The trace of a dense run is its weights.
  for (float w : b.weights) r.trace_hash = mix64(r.trace_hash ^ std::bit_cast<std::uint32_t>(w));
  r.digest = str(std::hex, r.trace_hash);
  return r;
}

}  // namespace rumor::sim
