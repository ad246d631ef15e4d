#include "runtime/training/model_trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "models/evaluate/evaluation.h"
#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/replica/replica.h"

namespace rumor {

ModelTrainer::ModelTrainer(const RunConfig& config, BuiltInModel built)
    : built_(std::move(built)),
      compressor_(built_.layout(), built_.compressor),
      encoder_(config, built_.layout().params()),
      repeatable_(config.hogwild == 0 && !config.has_byte_budget() && !config.has_own_models() &&
                  !wants_changes_of_others()) {
  const std::uint32_t params = layout().params();
  view_.assign(params, 0.0f);
  change_.assign(params, 0.0f);
  if (config.has_own_models()) copy_.assign(params, 0.0f);
}

Result<std::unique_ptr<ModelTrainer>> ModelTrainer::create(const RunConfig& config,
                                                           std::shared_ptr<const models::DataSet> data,
                                                           models::Shard shard, std::uint64_t sampling_seed,
                                                           const RecipeMaker& recipe) {
  auto built = BuiltInModel::create(config, std::move(data), shard, sampling_seed);
  if (!built) return built.error();
  std::unique_ptr<ModelTrainer> trainer(new ModelTrainer(config, std::move(built).value()));
  if (recipe) {
    trainer->recipe_ = recipe(trainer->built_);
    trainer->repeatable_ = false;
    return trainer;
  }
  if (auto made = trainer->make_recipe(config); !made) return made.error();
  return trainer;
}

Result<void> ModelTrainer::make_recipe(const RunConfig& config) {
  if (config.has_own_models()) {
    auto own = std::make_unique<OwnModel>(config, built_);
    own_model_ = own.get();
    recipe_ = std::move(own);
    return {};
  }
  auto made = rumor::make_recipe(config, built_);
  if (!made) return made.error();
  recipe_ = std::move(made).value();
  return {};
}

void ModelTrainer::refresh(std::span<const std::int32_t> weights) {
  models::to_floats(weights, built_.grid_bits, own_model_ != nullptr ? copy_ : view_);
}

void ModelTrainer::follow(Replica& replica) {
  if (!replica.refresh({own_model_ != nullptr ? copy_ : view_, view().unit}, parallel())) refresh(replica.weights());
  if (own_model_ == nullptr) return;
  const std::span<const float> waits = compressor_.residual();
  const compress::Stretch all = compress::all_of(layout());
  compress::each_stretch(all, all.end, parallel(), [&](std::size_t, compress::Stretch where) {
    for (std::uint64_t i = where.begin; i < where.end; ++i) view_[i] = copy_[i] + waits[i];
  });
}

compress::FloatView ModelTrainer::view() { return {view_, std::ldexp(1.0f, -built_.grid_bits)}; }

Result<void> ModelTrainer::restore(std::span<const float> residual, BytesView optimizer_state) {
  if (residual.size() != view_.size()) return Error{Errc::corrupt, "its residual is of another size"};
  if (auto loaded = built_.optimizer->load(optimizer_state); !loaded) return loaded;
  compressor_.restore_residual(residual);
  return {};
}

Bytes ModelTrainer::carried_state() const {
  const std::span<const float> waits = compressor_.residual();
  const Bytes optimizer = built_.optimizer->save();
  ByteWriter groups;
  for (const compress::Compressor::Carried& group : compressor_.carried()) {
    groups.u64(static_cast<std::uint64_t>(group.owed));
    groups.u32(group.left_out);
  }
  // At once: a large state that grows is moved several times.
  Bytes state(waits.size_bytes() + groups.size() + optimizer.size());
  std::memcpy(state.data(), waits.data(), waits.size_bytes());
  std::memcpy(state.data() + waits.size_bytes(), groups.bytes().data(), groups.size());
  std::memcpy(state.data() + waits.size_bytes() + groups.size(), optimizer.data(), optimizer.size());
  return state;
}

Result<void> ModelTrainer::resume(BytesView carried, std::uint64_t pieces) {
  RUMOR_CHECK(built_.model->state_floats() == 0);
  ByteReader in(carried);
  std::vector<float> residual(view_.size());
  const BytesView floats = in.raw(residual.size() * sizeof(float));
  std::vector<compress::Compressor::Carried> groups = compressor_.carried();
  for (compress::Compressor::Carried& group : groups) {
    group.owed = static_cast<std::int64_t>(in.u64());
    group.left_out = in.u32();
  }
  if (in.failed()) return Error{Errc::corrupt, "the state of a trainer is cut short"};
  std::memcpy(residual.data(), floats.data(), floats.size());
  if (!std::all_of(residual.begin(), residual.end(), [](float waits) { return std::isfinite(waits); }))
    return Error{Errc::corrupt, "the residual holds a value that is not finite"};
  if (!compressor_.restore_carried(groups)) return Error{Errc::corrupt, "the state owes entries that none can owe"};
  if (auto restored = restore(residual, in.raw(in.remaining())); !restored) return restored;
  for (std::uint64_t piece = 0; piece < pieces; ++piece) built_.sampler->next_rows(built_.rows.piece());
  return {};
}

double ModelTrainer::share_of_work(std::uint32_t size) const {
  if (size == 0) return 1;
  return static_cast<double>(built_.model->multiply_adds_at(1, size)) /
         static_cast<double>(built_.model->multiply_adds(1));
}

MemoryUse ModelTrainer::memory() const {
  MemoryUse use;
  use.view = capacity_bytes(view_) + capacity_bytes(copy_);
  use.gradient = capacity_bytes(change_);
  use.residual = compressor_.residual_bytes();
  use.optimizer = built_.optimizer->memory_bytes();
  use.entries = compressor_.entry_bytes();
  use.activations = built_.model->memory_bytes();
  recipe_->add_memory(use);
  return use;
}

void ModelTrainer::set_parallel(Parallel* parallel) {
  built_.model->set_parallel(parallel);
  built_.optimizer->set_parallel(parallel);
  recipe_->set_parallel(parallel);
  compressor_.set_parallel(parallel);
  codec_.parallel = parallel;
}

StepResult ModelTrainer::step(const StepPlan& plan) {
  StepResult result;
  if (plan.drop_residual) compressor_.clear_residual();
  compressor_.set_decay(plan.flush ? 0 : built_.compressor.residual_decay);  // what waits in a flush is being sent
  const Result<void> absorbed = plan.flush ? absorb_nothing(plan, result) : absorb_step(plan, result);
  if (!absorbed) {
    result.failure = absorbed.error().text;
    return result;
  }
  result.period = plan.period;
  if (result.held)
    compressor_.withdraw(result.update);
  else if (auto encoded = encode(result); !encoded)
    result.failure = encoded.error().text;
  if (plan.survey) result.compression = compressor_.stats();
  return result;
}

Result<void> ModelTrainer::absorb_step(const StepPlan& plan, StepResult& result) {
  encoder_.plan(plan, compressor_);
  if (!plan.others.empty() && wants_changes_of_others()) revise(plan);
  // Asking for the residual costs a walk over the last update, which absorb() otherwise does in its own pass.
  const bool with_residual = recipe_->starts_from_residual();
  const std::span<const float> residual = with_residual ? compressor_.residual() : std::span<const float>();
  built_.optimizer->scale_adam_share(plan.adam_factor);
  const Recipe::Made made = recipe_->make(plan, {view_, residual}, change_);
  result.loss = made.loss;
  result.samples = built_.samples_of(plan);
  result.held = plan.hold || (plan.drift_bound > 0 && drift() <= plan.drift_bound);
  return made.rule ? compressor_.absorb_step(*made.rule, change_, result.update)
                   : compressor_.absorb(change_, result.update);
}

Result<void> ModelTrainer::absorb_nothing(const StepPlan& plan, StepResult& result) {
  compressor_.set_density(plan.density);
  auto absorbed = compressor_.absorb_nothing(result.update);
  result.held = result.update.index.empty();
  return absorbed;
}

// The squared norm of the own model's distance from its public copy, with this step's change. A peer that has not
// drifted sends nothing: Kamp, Adilova, Sicking, Hueger, Schlicht, Wirtz, Wrobel, ECML PKDD 2018, "Efficient
// decentralized deep learning by dynamic model averaging". There the distance is from what a coordinator last averaged.
double ModelTrainer::drift() const {
  const std::span<const float> waits = compressor_.residual();
  double drift = 0;
  for (std::size_t i = 0; i < change_.size(); ++i) {
    const double apart = static_cast<double>(waits[i]) + static_cast<double>(change_[i]);
    drift += apart * apart;
  }
  return drift;
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
  const compress::FloatView shared{own_model_ != nullptr ? copy_ : view_, view().unit};
  compress::CompressorEntries chosen(compressor_, layout(), result.update, codec_,
                                     {.guard = compress::RangeGuard(shared)});
  return encoder_.encode(chosen, result);
}

models::Evaluation ModelTrainer::evaluate(std::span<const float> weights, std::uint32_t rows_max) {
  return models::evaluate_on_test(*built_.model, *built_.data, weights, rows_max);
}

}  // namespace rumor
