// DeviceTrainer: a built-in model on a GPU as a trainer (gpu/README.md, chapter 5). Forward and backward pass,
// optimizer, residual, selection and coding happen there; payload bytes and the places of the view that changed cross
// the bus.
//
// The replica, its integers and the view that others write to stay on the host. The GPU has a view of its own, which
// follows at the start of a step: the entries of what arrived, and of what is expected of others, one index and one
// float each; or all of it, where that is less.
//
// Bits: its updates are not those of a CPU, whose products add up in another order. What happens to them is the same.
//
// Several GPUs are one trainer: each computes a part of every batch with a view of its own, and the first has the rest,
// one optimizer, one residual, one stream of updates.
//
// Threads: as runtime/trainer.h has them; the GPU's one caller is whoever the trainer's memory belongs to.
// Memory: a parameter takes 12 bytes on the GPU and 8 here, and in both places 4 more for each moment of the optimizer;
// on every further GPU 8.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compress/update.h"
#include "gpu/clip.h"
#include "gpu/codec.h"
#include "gpu/compressor.h"
#include "gpu/split_model.h"
#include "runtime/built_in_model.h"
#include "runtime/followed_view.h"
#include "runtime/trainer.h"

namespace rumor {

class DeviceTrainer final : public Trainer {
 public:
  // Errors: those of BuiltInModel::create(); Errc::usage for what only a CPU does (Hogwild! workers, several batches
  // a step, AdaptiveRevision, budgets in bytes); Errc::limit for too little memory, with what to reduce.
  static Result<std::unique_ptr<DeviceTrainer>> create(std::unique_ptr<gpu::GpuGroup> gpus, const RunConfig& config,
                                                       std::shared_ptr<const models::DataSet> data,
                                                       models::Shard shard, std::uint64_t sampling_seed);

  const ParamLayout& layout() const override { return built_.layout(); }
  LargeVector<std::int32_t> initial_weights() const override { return built_.initial_weights(); }

  void follow(Replica& replica) override { view_.follow(replica, parallel()); }
  void expect(const InFlightView& in_flight) override { view_.expect(in_flight); }
  compress::FloatView view() override { return view_.view(); }
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

  // What the GPU's view shows, copied: that of the host as of the last step, where followed() is not to change yet.
  Result<std::vector<float>> device_view() const;
  const FollowedView& followed() const { return view_; }

 private:
  DeviceTrainer(std::unique_ptr<gpu::GpuGroup> gpus, BuiltInModel built);
  Result<void> prepare(const RunConfig& config);
  Result<void> send_view();
  void gather_places();
  Result<void> put_places();
  Result<void> compute(const StepPlan& plan, StepResult& result);
  StepRule begin_step(double rate);
  Result<void> encode(StepResult& result);

  BuiltInModel built_;  // of its model the layout and the beginning: it computes nothing
  FollowedView view_;
  Parallel* parallel_ = nullptr;
  Serial alone_;
  mutable std::vector<float> residual_;
  std::optional<Error> failure_;  // of an evaluation, still to be told

  std::unique_ptr<gpu::GpuGroup> gpus_;  // outlives all that follows
  const gpu::Gpu* gpu_;                  // the first of them, where all is that follows but the model's parts
  std::optional<gpu::SplitModel> model_;
  mutable std::optional<gpu::DeviceCompressor> compressor_;
  std::optional<gpu::DeviceCodec> codec_;
  std::optional<gpu::DeviceClip> clip_;  // where the run file says so
  gpu::DeviceUpdate update_;
  gpu::DeviceArray<float> weights_, gradient_;  // its view; between steps gradient_ has the weights that are evaluated
  // Where the view changed, and to what: here, kept from step to step, and there.
  std::vector<std::uint32_t> changed_place_;
  std::vector<float> changed_value_;
  gpu::DeviceArray<std::uint32_t> place_;
  gpu::DeviceArray<float> value_;
  std::vector<gpu::DeviceArray<float>> moments_;  // the optimizer's, in its order; these are the ones that count
};

}  // namespace rumor
