// DeviceTrainer: a built-in model on a GPU as a trainer (gpu/README.md, chapter 5). All that there is of each parameter
// is there: weights as integers and as floats, gradient, moments, residual; and all that is done with it: forward and
// backward pass, optimizer (device_recipe.h), selection, coding, decoding, applying. Payload bytes cross the bus.
//
// No update takes a weight near the end of the grid: as on the CPU, such entries wait (gpu/compress/range_guard.h).
//
// Names, fingerprint and log are the host's, and integers of its own, for snapshots and checkpoints; no step waits for
// these (Trainer::keeps_weights). That both are equal is verified where all that waits is looked at, and before an
// evaluation.
//
// Bits: its updates are not those of a CPU, whose products add up in another order. Coding and applying them are.
//
// Several GPUs are one trainer: each computes a part of every batch with a view of its own, and the first has the rest,
// one replica, one optimizer, one residual, one stream of updates.
//
// Threads: as runtime/training/trainer.h has them. The GPU's one caller is the owner of the trainer's memory; that of
// the stream for arriving updates is the protocol thread.
// Memory: a parameter takes 16 bytes on the GPU and 4 here, and in both places 4 more for each moment of the optimizer;
// on every further GPU 8. Steps of several mini-batches, and Muon, take more on the first GPU (device_recipe.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compress/payload/update.h"
#include "gpu/compress/codec.h"
#include "gpu/compress/compressor.h"
#include "gpu/compress/range_guard.h"
#include "gpu/models/split_model.h"
#include "runtime/training/built_in_model.h"
#include "runtime/training/device_recipe.h"
#include "runtime/training/device_view.h"
#include "runtime/training/trainer.h"
#include "runtime/training/update_encoder.h"

namespace rumor {

class DeviceTrainer final : public Trainer {
 public:
  // Errors: those of BuiltInModel::create(); Errc::usage for what only a CPU does (Hogwild! workers, AdaptiveRevision,
  // budgets in bytes); Errc::limit for too little memory, with what to reduce.
  static Result<std::unique_ptr<DeviceTrainer>> create(std::unique_ptr<gpu::GpuGroup> gpus, const RunConfig& config,
                                                       std::shared_ptr<const models::DataSet> data,
                                                       models::Shard shard, std::uint64_t sampling_seed);

  const ParamLayout& layout() const override { return built_.layout(); }
  LargeVector<std::int32_t> initial_weights() const override { return built_.initial_weights(); }

  // The next step reports an error of these.
  void arrived(const std::shared_ptr<const Bytes>& payload) override { view_->arrived(payload); }
  void follow(Replica& replica) override { view_->follow(replica, update_, made_); }
  void expect(Replica&, InFlightView& in_flight) override { view_->expect(in_flight); }
  void lift(Replica&, InFlightView& in_flight) override { view_->lift(in_flight); }
  bool keeps_weights() const override { return true; }
  bool takes_batches() const override { return true; }
  bool flushes() const override { return true; }
  // Copied from the GPU, to where the last copy was. After a failure of it: what was copied last.
  std::span<const float> residual() const override;
  Bytes optimizer_state() const override;
  Result<void> restore(std::span<const float> residual, BytesView optimizer_state) override;
  compress::CompressorStats compression() const override;
  // On the GPU and here together, but for what products take there.
  MemoryUse memory() const override;
  std::uint64_t multiply_adds() const override { return built_.multiply_adds(); }
  void set_parallel(Parallel* parallel) override { parallel_ = parallel; }
  Parallel& parallel() override { return parallel_ != nullptr ? *parallel_ : alone_; }

  StepResult step(const StepPlan& plan) override;
  // Where the GPU fails the loss is no number, and the next step says why.
  models::Evaluation evaluate(std::span<const float> weights, std::uint32_t rows_max) override;

  // A copy of the floats on the GPU.
  Result<std::vector<float>> device_view() const;

 private:
  DeviceTrainer(std::unique_ptr<gpu::GpuGroup> gpus, BuiltInModel built);
  Result<void> prepare(const RunConfig& config);
  Result<void> compute(const StepPlan& plan, StepResult& result);
  Result<void> absorb_step(const StepPlan& plan, StepResult& result);
  Result<void> absorb_nothing(StepResult& result);
  Result<void> encode(StepResult& result);

  BuiltInModel built_;  // of its model the layout and the beginning: it computes nothing
  Parallel* parallel_ = nullptr;
  Serial alone_;
  mutable std::vector<float> residual_;
  std::optional<Error> failure_;  // of an evaluation; the next step reports it

  std::unique_ptr<gpu::GpuGroup> gpus_;  // outlives all that follows
  const gpu::Gpu* gpu_;                  // the first of them, where all is that follows but the model's parts
  std::optional<gpu::SplitModel> model_;
  mutable std::optional<gpu::DeviceCompressor> compressor_;
  std::optional<gpu::DeviceCodec> codec_;
  std::optional<gpu::DeviceRangeGuard> guard_;
  UpdateEncoder encoder_;
  std::optional<DeviceRecipe> recipe_;
  std::optional<DeviceView> view_;
  gpu::DeviceUpdate update_;  // of the last step,
  Bytes made_;                // and its payload
  // The change of a step, or its gradient; between steps weights of somebody else that are evaluated.
  gpu::DeviceArray<float> change_;
};

}  // namespace rumor
