// Trainer: the compute of one peer. From the float view of the weights to the next update.
//
// The node decides when a step starts and what its rate is; the trainer runs it wherever the driver puts it
// (a worker thread, or in place in the simulator). Its memory (float view, gradient, residual, optimizer
// state, activations) belongs to whoever runs step() or evaluate() from the StartStep / StartEvaluation
// effect until the node is told the result, and to the protocol thread otherwise. No locks: ownership passes
// with the effect.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compress/apply.h"
#include "compress/budget.h"
#include "compress/compressor.h"
#include "models/dataset.h"
#include "models/hogwild.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "runtime/base/large_vector.h"
#include "runtime/memory_use.h"
#include "runtime/run_config.h"

namespace rumor {

// What a step is told.
struct StepPlan {
  double rate = 0;  // this peer's share of the learning rate
  double density = 0.001;  // not used where the run file has a budget in bytes
  std::uint64_t period = 0;
  double seconds = 0;  // since the last step began; 0: there was none
  bool hold = false;   // no update: the change waits in the residual
  // What others changed since the last step began; only where the optimizer asks for it.
  std::vector<compress::SparseUpdate> others = {};
};

// What it brings back.
struct StepResult {
  bool held = false;  // as planned; there is no update then
  compress::SparseUpdate update;
  Bytes payload;  // the canonical encoding of `update`
  std::uint64_t period = 0;
  std::uint32_t samples = 0;
  double loss = 0;      // mean over the batch
  std::string failure;  // empty, or why training cannot go on (a non-finite gradient)
};

// Mean loss and accuracy over the first `rows_max` test rows, in blocks that bound the model's activations.
models::Evaluation evaluate_on_test(models::Model& model, const models::DataSet& data,
                                    std::span<const float> weights, std::uint32_t rows_max);

class Trainer {
 public:
  // Errors: Errc::usage for an unknown model or optimizer, Errc::limit for a shard without enough rows.
  static Result<std::unique_ptr<Trainer>> create(const RunConfig& config,
                                                 std::shared_ptr<const models::DataSet> data,
                                                 models::Shard shard, std::uint64_t sampling_seed);

  const ParamLayout& layout() const { return model_->layout(); }
  LargeVector<std::int32_t> initial_weights() const;

  // ---- between steps, on the protocol thread ----
  // view[i] = weights[i] on the grid, for every i.
  void refresh(std::span<const std::int32_t> weights);
  // The view itself, for those who know where it changes.
  compress::FloatView view();
  // The weights as floats, for evaluate(). They lie where the gradient of the next step will: valid until then.
  std::span<const float> weights_to_evaluate(std::span<const std::int32_t> weights);
  std::span<const float> residual() const { return compressor_->residual(); }
  Bytes optimizer_state() const { return optimizer_->save(); }
  // Errors: Errc::corrupt.
  Result<void> restore(std::span<const float> residual, BytesView optimizer_state);
  compress::CompressorStats compression() const { return compressor_->stats(); }
  // All but weights, in_flight and log; entries as far as they are the compressor's.
  MemoryUse memory() const;
  // Whether StepPlan.others is looked at.
  bool wants_changes_of_others() const { return optimizer_->wants_changes_of_others(); }

  // Of a step's forward pass, about.
  std::uint64_t multiply_adds() const { return model_->multiply_adds(batch_); }
  // For the model, the passes over all parameters and coding, and for Hogwild! workers, of which as many are at work as
  // it can run at once; null: the caller's thread. Must outlive its use.
  void set_parallel(Parallel* parallel);
  Parallel& parallel() { return codec_.parallel != nullptr ? *codec_.parallel : alone_; }

  // ---- wherever the driver runs compute ----
  // The optimizer's step is taken inside the compressor's pass, with the bits of one after the other. With Hogwild!
  // workers a step is a round of theirs, and what they changed goes the same way.
  StepResult step(const StepPlan& plan);
  // Loss and accuracy on the test set; at most `rows_max` of its rows, from the first.
  models::Evaluation evaluate(std::span<const float> weights, std::uint32_t rows_max);

  // Weights as floats.
  static std::vector<float> to_floats(std::span<const std::int32_t> weights, int grid_bits);

 private:
  Trainer(const RunConfig& config, std::shared_ptr<const models::DataSet> data);
  Result<void> make_workers(const RunConfig& config, const models::ModelConfig& model);
  Result<void> absorb_batch(const StepPlan& plan, StepResult& result);
  Result<void> absorb_round(const StepPlan& plan, StepResult& result);
  void revise(const StepPlan& plan);
  void encode(StepResult& result);

  int grid_bits_;
  std::uint32_t batch_, batches_;  // rows of a mini-batch, mini-batches of a step
  double clip_;
  std::uint64_t seed_;
  std::shared_ptr<const models::DataSet> data_;
  std::unique_ptr<models::Model> model_;
  std::unique_ptr<models::Optimizer> optimizer_;
  std::optional<models::Hogwild> hogwild_;  // where the run file says so
  std::optional<models::BatchSampler> sampler_;
  std::unique_ptr<compress::Compressor> compressor_;
  compress::CodecOptions codec_;
  Serial alone_;
  std::optional<compress::ByteBudget> budget_;  // where the run file has one in bytes
  double seconds_held_ = 0;                     // of steps without an update, since the last
  LargeVector<float> view_, gradient_;
};

}  // namespace rumor
