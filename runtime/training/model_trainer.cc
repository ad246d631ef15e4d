#include "runtime/training/model_trainer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/evaluate/ensemble.h"
#include "models/evaluate/evaluation.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/exchange/neighbourhood.h"
#include "runtime/replica/replica.h"

namespace rumor {

ModelTrainer::ModelTrainer(const RunConfig& config, BuiltInModel built)
    : built_(std::move(built)),
      clip_(config.optimizer.clip),
      compressor_(built_.layout(), built_.compressor),
      encoder_(config, built_.layout().params()),
      own_model_(config.has_own_models()),
      agreement_(static_cast<float>(config.neighbour_rules.agreement)) {
  const std::uint32_t params = layout().params();
  view_.assign(params, 0.0f);
  gradient_.assign(params, 0.0f);
  if (own_model_) copy_.assign(params, 0.0f);
  if (config.averages()) pull_.assign(params, 0.0f);
}

Result<std::unique_ptr<ModelTrainer>> ModelTrainer::create(const RunConfig& config,
                                                           std::shared_ptr<const models::DataSet> data,
                                                           models::Shard shard, std::uint64_t sampling_seed) {
  auto built = BuiltInModel::create(config, std::move(data), shard, sampling_seed);
  if (!built) return built.error();
  std::unique_ptr<ModelTrainer> trainer(new ModelTrainer(config, std::move(built).value()));
  if (auto made = trainer->make_workers(config.workers()); !made) return made.error();
  return trainer;
}

// Models for the workers besides the one that evaluates: activations come with the first batch.
Result<void> ModelTrainer::make_workers(std::uint32_t workers) {
  if (workers == 0) return {};
  std::vector<std::unique_ptr<models::Model>> models;
  for (std::uint32_t worker = 0; worker < workers; ++worker) {
    auto made = models::make_model(built_.config);
    if (!made) return made.error();
    models.push_back(std::move(made).value());
  }
  hogwild_.emplace(std::move(models), built_.data, clip_);
  return {};
}

void ModelTrainer::refresh(std::span<const std::int32_t> weights) {
  models::to_floats(weights, built_.grid_bits, own_model_ ? copy_ : view_);
}

void ModelTrainer::follow(Replica& replica) {
  if (!replica.refresh({own_model_ ? copy_ : view_, view().unit}, parallel())) refresh(replica.weights());
  if (!own_model_) return;
  const std::span<const float> waits = compressor_.residual();
  const compress::Stretch all = compress::all_of(layout());
  compress::each_stretch(all, all.end, parallel(), [&](std::size_t, compress::Stretch where) {
    for (std::uint64_t i = where.begin; i < where.end; ++i) view_[i] = copy_[i] + waits[i];
  });
}

void ModelTrainer::draw(const Neighbourhood& neighbours, double share) { neighbours.pull(share, pull_, parallel()); }

void ModelTrainer::learn_from(std::span<const std::span<const std::int32_t>> teachers) {
  teachers_.resize(teachers.size());
  for (std::size_t t = 0; t < teachers.size(); ++t) {
    teachers_[t].resize(teachers[t].size());
    models::to_floats(teachers[t], built_.grid_bits, teachers_[t]);
  }
}

compress::FloatView ModelTrainer::view() { return {view_, std::ldexp(1.0f, -built_.grid_bits)}; }

Result<void> ModelTrainer::restore(std::span<const float> residual, BytesView optimizer_state) {
  if (residual.size() != view_.size()) return Error{Errc::corrupt, "its residual is of another size"};
  if (auto loaded = built_.optimizer->load(optimizer_state); !loaded) return loaded;
  compressor_.restore_residual(residual);
  return {};
}

MemoryUse ModelTrainer::memory() const {
  MemoryUse use;
  use.view = capacity_bytes(view_) + capacity_bytes(copy_) + capacity_bytes(pull_);
  for (const LargeVector<float>& teacher : teachers_) use.view += capacity_bytes(teacher);
  use.gradient = capacity_bytes(gradient_);
  use.residual = compressor_.residual_bytes();
  use.optimizer = built_.optimizer->memory_bytes();
  use.hogwild = hogwild_ ? hogwild_->memory_bytes() : 0;
  use.entries = compressor_.entry_bytes();
  use.activations = built_.model->memory_bytes() + (hogwild_ ? hogwild_->activation_bytes() : 0);
  return use;
}

void ModelTrainer::set_parallel(Parallel* parallel) {
  built_.model->set_parallel(parallel);
  if (hogwild_) hogwild_->set_parallel(parallel);
  compressor_.set_parallel(parallel);
  codec_.parallel = parallel;
}

StepResult ModelTrainer::step(const StepPlan& plan) {
  StepResult result;
  encoder_.plan(plan, compressor_);
  result.held = plan.hold;
  if (auto absorbed = own_model_ ? absorb_own(plan, result)
                      : hogwild_ ? absorb_round(plan, result)
                                 : absorb_batch(plan, result);
      !absorbed) {
    result.failure = absorbed.error().text;
    return result;
  }
  result.period = plan.period;
  result.samples = built_.samples();
  if (result.held)
    compressor_.withdraw(result.update);
  else if (auto encoded = encode(result); !encoded)
    result.failure = encoded.error().text;
  if (plan.survey) result.compression = compressor_.stats();
  return result;
}

Result<void> ModelTrainer::absorb_batch(const StepPlan& plan, StepResult& result) {
  result.loss = built_.model->loss_and_gradient(view_, built_.sampler->next(), gradient_);
  if (clip_ > 0) models::clip_by_norm(gradient_, clip_);
  if (!plan.others.empty() && wants_changes_of_others()) revise(plan);
  return compressor_.absorb_step(built_.optimizer->begin_step(plan.rate, view_), gradient_, result.update);
}

// The optimizer's step and the neighbours' pull take the place of the gradient. (Kamp, Adilova, Sicking, Hueger,
// Schlicht, Wirtz, Wrobel, ECML PKDD 2018, "Efficient decentralized deep learning by dynamic model averaging": who
// has not drifted from what all know keeps silent. There it is what a coordinator last averaged; here, the own
// public copy.)
Result<void> ModelTrainer::absorb_own(const StepPlan& plan, StepResult& result) {
  result.loss = taught_gradient();
  if (clip_ > 0) models::clip_by_norm(gradient_, clip_);
  built_.optimizer->step(gradient_, plan.rate, gradient_, view_);
  for (std::size_t i = 0; i < pull_.size(); ++i) gradient_[i] += pull_[i];
  if (plan.drift_bound > 0) {
    const std::span<const float> waits = compressor_.residual();
    double drift = 0;
    for (std::size_t i = 0; i < gradient_.size(); ++i) {
      const double apart = static_cast<double>(waits[i]) + static_cast<double>(gradient_[i]);
      drift += apart * apart;
    }
    result.held = result.held || drift <= plan.drift_bound;
  }
  return compressor_.absorb(gradient_, result.update);
}

double ModelTrainer::taught_gradient() {
  models::Batch batch = built_.sampler->next();
  if (!teachers_.empty()) {
    const std::vector<std::span<const float>> all(teachers_.begin(), teachers_.end());
    models::mean_prediction(*built_.model, all, batch, taught_);
    batch.soft = {taught_, agreement_};
  }
  return built_.model->loss_and_gradient(view_, batch, gradient_);
}

// The workers' change takes the place of the gradient.
Result<void> ModelTrainer::absorb_round(const StepPlan& plan, StepResult& result) {
  std::vector<StepRule> rules;
  for (std::uint32_t batch = 0; batch < built_.batches; ++batch)
    rules.push_back(built_.optimizer->begin_step(plan.rate, view_));
  result.loss = hogwild_->round(view_, built_.sampler->next_rows(), rules, gradient_);
  return compressor_.absorb(gradient_, result.update);
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
  const float unit = std::ldexp(1.0f, -built_.grid_bits);
  std::vector<std::uint32_t> index;
  std::vector<float> change;
  for (std::size_t e = 0; e < entries.size();) {
    const std::uint32_t at = entries[e].first;
    std::uint32_t sum = 0;
    for (; e < entries.size() && entries[e].first == at; ++e) sum += entries[e].second;
    index.push_back(at);
    change.push_back(static_cast<float>(static_cast<std::int32_t>(sum)) * unit);
  }
  built_.optimizer->revise(plan.rate, index, change);
  compressor_.add(index, change);
}

Result<void> ModelTrainer::encode(StepResult& result) {
  compress::CompressorEntries chosen(compressor_, layout(), result.update, codec_);
  auto payload = encoder_.encode(chosen);
  if (!payload) return payload.error();
  result.payload = std::move(payload).value();
  return {};
}

models::Evaluation ModelTrainer::evaluate(std::span<const float> weights, std::uint32_t rows_max) {
  return models::evaluate_on_test(*built_.model, *built_.data, weights, rows_max);
}

}  // namespace rumor
