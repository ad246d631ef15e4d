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
// Threads: as runtime/trainer.h has them; the GPU's one caller is whoever the trainer's memory belongs to.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compress/update.h"
#include "gpu/codec.h"
#include "gpu/compressor.h"
#include "gpu/mlp.h"
#include "models/dataset.h"
#include "models/optimizer.h"
#include "runtime/run_config.h"
#include "runtime/trainer.h"

namespace rumor {

class DeviceTrainer final : public Trainer {
 public:
  // Errors: as ModelTrainer::create(); Errc::usage for what only a CPU does (other families than mlp, Hogwild! workers,
  // clipping, AdaptiveRevision, budgets in bytes); Errc::limit for too little memory, with what to reduce.
  static Result<std::unique_ptr<DeviceTrainer>> create(std::unique_ptr<gpu::Gpu> gpu, const RunConfig& config,
                                                       std::shared_ptr<const models::DataSet> data,
                                                       models::Shard shard, std::uint64_t sampling_seed);

  const ParamLayout& layout() const override { return model_->layout(); }
  LargeVector<std::int32_t> initial_weights() const override;

  void follow(Replica& replica) override;
  void shown(std::span<const compress::SharedUpdate> where) override;
  compress::FloatView view() override;
  // Copied from the GPU. After a failure of it: what was copied last.
  std::span<const float> residual() const override;
  Bytes optimizer_state() const override;
  Result<void> restore(std::span<const float> residual, BytesView optimizer_state) override;
  compress::CompressorStats compression() const override;
  // On the GPU and here together.
  MemoryUse memory() const override;
  std::uint64_t multiply_adds() const override { return model_->multiply_adds(batch_); }
  void set_parallel(Parallel* parallel) override { parallel_ = parallel; }
  Parallel& parallel() override { return parallel_ != nullptr ? *parallel_ : alone_; }

  StepResult step(const StepPlan& plan) override;
  models::Evaluation evaluate(std::span<const float> weights, std::uint32_t rows_max) override;

 private:
  // One of the optimizer's, here and there. The GPU's is the one that counts.
  struct Moment {
    float* here = nullptr;
    gpu::DeviceArray<float> there;
  };

  DeviceTrainer(std::unique_ptr<gpu::Gpu> gpu, const RunConfig& config, std::shared_ptr<const models::DataSet> data);
  Result<void> make_arrays(const RunConfig& config);
  Result<void> send_view();
  Result<void> put_places();
  void remember(const compress::SharedUpdate& update);
  Result<void> compute(const StepPlan& plan, StepResult& result);
  Result<void> encode(StepResult& result);

  int grid_bits_;
  std::uint32_t batch_, batches_;
  std::uint64_t seed_;
  std::shared_ptr<const models::DataSet> data_;
  std::unique_ptr<models::Model> model_;  // its layout and its beginning; it computes nothing
  std::unique_ptr<models::Optimizer> optimizer_;
  std::optional<models::BatchSampler> sampler_;
  Parallel* parallel_ = nullptr;
  Serial alone_;
  LargeVector<float> view_;
  std::vector<compress::SharedUpdate> changed_;  // where view_ changed since the last step
  std::uint64_t changed_entries_ = 0;
  bool all_changed_ = true;  // more than changed_ knows
  mutable std::vector<float> residual_;

  std::unique_ptr<gpu::Gpu> gpu_;  // outlives all that follows
  std::optional<gpu::DeviceMlp> mlp_;
  mutable std::optional<gpu::DeviceCompressor> compressor_;
  std::optional<gpu::DeviceCodec> codec_;
  gpu::DeviceUpdate update_;
  gpu::DeviceArray<float> weights_, gradient_;  // its view; between steps gradient_ has the weights that are evaluated
  gpu::DeviceArray<std::uint32_t> place_;
  gpu::DeviceArray<float> value_;
  std::vector<Moment> moments_;
};

}  // namespace rumor
