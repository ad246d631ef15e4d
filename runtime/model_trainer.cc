#include "runtime/model_trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/limits.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/text.h"
#include "runtime/replica.h"

namespace rumor {

std::uint64_t sampling_seed(const RunConfig& config, const NodeId& node) {
  return mix64(config.seed ^ ByteReader(node.view()).u64());
}

ModelTrainer::ModelTrainer(const RunConfig& config, std::shared_ptr<const models::DataSet> data)
    : grid_bits_(config.grid_bits),
      batch_(config.batch),
      batches_(config.batches()),
      clip_(config.optimizer.clip),
      seed_(config.seed),
      data_(std::move(data)) {}

Result<std::unique_ptr<ModelTrainer>> ModelTrainer::create(const RunConfig& config,
                                                 std::shared_ptr<const models::DataSet> data,
                                                 models::Shard shard, std::uint64_t sampling_seed) {
  shard.seed = config.seed;  // one split for the whole run: parts must not overlap
  shard.skew = config.data.skew;
  if (auto exists = models::check_shard(*data, shard); !exists) return exists.error();
  models::ModelConfig model_config = config.model;
  data->describe(model_config);
  auto model = models::make_model(model_config);
  if (!model) return model.error();
  const std::uint32_t params = (*model)->layout().params();
  auto optimizer = models::make_optimizer(config.optimizer, params);
  if (!optimizer) return optimizer.error();
  std::unique_ptr<ModelTrainer> trainer(new ModelTrainer(config, data));
  trainer->model_ = std::move(model).value();
  trainer->optimizer_ = std::move(optimizer).value();
  if (auto made = trainer->make_workers(config, model_config); !made) return made.error();
  trainer->sampler_.emplace(data, shard, config.batch * config.batches(), sampling_seed);
  compress::CompressorOptions options{
      .grid_bits = config.grid_bits, .emit = config.emit, .scope = config.scope};
  if (!config.has_byte_budget()) options.density = config.density_for(1);
  trainer->compressor_ = std::make_unique<compress::Compressor>(trainer->model_->layout(), options);
  if (config.has_byte_budget())
    trainer->budget_.emplace(params,
                             compress::ByteBudget::Limits{config.bytes_per_update, config.bytes_per_second});
  trainer->view_.assign(params, 0.0f);
  trainer->gradient_.assign(params, 0.0f);
  return trainer;
}

// Models for the workers besides the one that evaluates: activations come with the first batch.
Result<void> ModelTrainer::make_workers(const RunConfig& config, const models::ModelConfig& model) {
  if (config.workers() == 0) return {};
  std::vector<std::unique_ptr<models::Model>> models;
  for (std::uint32_t worker = 0; worker < config.workers(); ++worker) {
    auto made = models::make_model(model);
    if (!made) return made.error();
    models.push_back(std::move(made).value());
  }
  hogwild_.emplace(std::move(models), data_, clip_);
  return {};
}

LargeVector<std::int32_t> ModelTrainer::initial_weights() const {
  return models::initial_weights(*model_, seed_, grid_bits_);
}

void ModelTrainer::refresh(std::span<const std::int32_t> weights) { to_floats(weights, grid_bits_, view_); }

void ModelTrainer::follow(Replica& replica) {
  if (!replica.refresh(view(), parallel())) refresh(replica.weights());
}

compress::FloatView ModelTrainer::view() { return {view_, std::ldexp(1.0f, -grid_bits_)}; }

Result<void> ModelTrainer::restore(std::span<const float> residual, BytesView optimizer_state) {
  if (residual.size() != view_.size()) return Error{Errc::corrupt, "its residual is of another size"};
  if (auto loaded = optimizer_->load(optimizer_state); !loaded) return loaded;
  compressor_->restore_residual(residual);
  return {};
}

MemoryUse ModelTrainer::memory() const {
  MemoryUse use;
  use.view = capacity_bytes(view_);
  use.gradient = capacity_bytes(gradient_);
  use.residual = compressor_->residual_bytes();
  use.optimizer = optimizer_->memory_bytes();
  use.hogwild = hogwild_ ? hogwild_->memory_bytes() : 0;
  use.entries = compressor_->entry_bytes();
  use.activations = model_->memory_bytes() + (hogwild_ ? hogwild_->activation_bytes() : 0);
  return use;
}

void ModelTrainer::set_parallel(Parallel* parallel) {
  model_->set_parallel(parallel);
  if (hogwild_) hogwild_->set_parallel(parallel);
  compressor_->set_parallel(parallel);
  codec_.parallel = parallel;
}

StepResult ModelTrainer::step(const StepPlan& plan) {
  StepResult result;
  seconds_held_ += plan.seconds;
  if (!plan.hold && budget_) compressor_->set_entries(budget_->plan(std::exchange(seconds_held_, 0)));
  if (!budget_) compressor_->set_density(plan.density);
  if (auto absorbed = hogwild_ ? absorb_round(plan, result) : absorb_batch(plan, result); !absorbed) {
    result.failure = absorbed.error().text;
    return result;
  }
  result.period = plan.period;
  result.samples = batch_ * batches_;
  result.held = plan.hold;
  if (plan.hold)
    compressor_->withdraw(result.update);
  else
    encode(result);
  if (plan.survey) result.compression = compressor_->stats();
  return result;
}

Result<void> ModelTrainer::absorb_batch(const StepPlan& plan, StepResult& result) {
  result.loss = model_->loss_and_gradient(view_, sampler_->next(), gradient_);
  if (clip_ > 0) models::clip_by_norm(gradient_, clip_);
  if (!plan.others.empty() && wants_changes_of_others()) revise(plan);
  return compressor_->absorb_step(optimizer_->begin_step(plan.rate, view_), gradient_, result.update);
}

// The workers' change takes the place of the gradient.
Result<void> ModelTrainer::absorb_round(const StepPlan& plan, StepResult& result) {
  std::vector<StepRule> rules;
  for (std::uint32_t batch = 0; batch < batches_; ++batch) rules.push_back(optimizer_->begin_step(plan.rate, view_));
  result.loss = hogwild_->round(view_, sampler_->next_rows(), rules, gradient_);
  return compressor_->absorb(gradient_, result.update);
}

// The changes of all others, added up as integers: their order does not matter.
void ModelTrainer::revise(const StepPlan& plan) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> entries;
  for (const compress::SparseUpdate& update : plan.others)
    for (const compress::StepRun& run : compress::step_runs(layout(), update))
      for (std::size_t e = run.first; e < run.first + run.count; ++e) {
        const auto step = static_cast<std::uint32_t>(run.step);
        entries.emplace_back(update.index[e], update.negative[e] != 0 ? 0 - step : step);
      }
  std::sort(entries.begin(), entries.end());
  const float unit = std::ldexp(1.0f, -grid_bits_);
  std::vector<std::uint32_t> index;
  std::vector<float> change;
  for (std::size_t e = 0; e < entries.size();) {
    const std::uint32_t at = entries[e].first;
    std::uint32_t sum = 0;
    for (; e < entries.size() && entries[e].first == at; ++e) sum += entries[e].second;
    index.push_back(at);
    change.push_back(static_cast<float>(static_cast<std::int32_t>(sum)) * unit);
  }
  optimizer_->revise(plan.rate, index, change);
  compressor_->add(index, change);
}

// Never more than an update may have, whatever the density: what is cut off waits in the residual.
void ModelTrainer::encode(StepResult& result) {
  if (!budget_) result.payload = compress::encode(model_->layout(), result.update, codec_);
  if (budget_ || result.payload.size() > limits::payload_bytes_max) {
    const std::uint64_t bytes_max =
        std::min<std::uint64_t>(budget_ ? budget_->bytes_max() : UINT64_MAX, limits::payload_bytes_max);
    result.payload =
        compress::encode_within(*compressor_, model_->layout(), result.update, bytes_max, codec_);
  }
  if (budget_) budget_->sent(result.update.index.size(), result.payload.size());
}

models::Evaluation evaluate_on_test(const models::DataSet& data, std::uint32_t rows_max,
                                    const std::function<models::Evaluation(const models::Batch&)>& evaluate) {
  const std::uint32_t rows = std::min(rows_max, data.test_rows());
  const std::uint32_t block = data.evaluation_block();
  models::BatchMemory memory;
  models::Evaluation mean{0, {}};
  for (std::uint32_t first = 0; first < rows; first += block) {
    const std::uint32_t count = std::min(block, rows - first);
    const models::Evaluation part = evaluate(data.test_batch(first, count, memory));
    mean.loss += part.loss * count;
    if (part.accuracy) mean.accuracy = mean.accuracy.value_or(0) + *part.accuracy * count;
  }
  mean.loss /= rows;
  if (mean.accuracy) *mean.accuracy /= rows;
  return mean;
}

models::Evaluation evaluate_on_test(models::Model& model, const models::DataSet& data,
                                    std::span<const float> weights, std::uint32_t rows_max) {
  return evaluate_on_test(data, rows_max,
                          [&](const models::Batch& batch) { return model.evaluate(weights, batch); });
}

models::Evaluation ModelTrainer::evaluate(std::span<const float> weights, std::uint32_t rows_max) {
  return evaluate_on_test(*model_, *data_, weights, rows_max);
}

std::vector<float> ModelTrainer::to_floats(std::span<const std::int32_t> weights, int grid_bits) {
  std::vector<float> floats(weights.size());
  to_floats(weights, grid_bits, floats);
  return floats;
}

void ModelTrainer::to_floats(std::span<const std::int32_t> weights, int grid_bits, std::span<float> floats) {
  RUMOR_CHECK(weights.size() == floats.size());
  const float unit = std::ldexp(1.0f, -grid_bits);
  std::transform(weights.begin(), weights.end(), floats.begin(),
                 [unit](std::int32_t w) { return static_cast<float>(w) * unit; });
}

}  // namespace rumor
