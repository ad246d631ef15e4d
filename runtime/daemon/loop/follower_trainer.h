// FollowerTrainer: in the place of a trainer where a peer follows its run and neither trains nor evaluates.
//
// It knows the shapes of the model and nothing of the data. The replica's integers are its only copy of the weights, so
// a follower keeps one word a parameter.
//
// Thread: as runtime/training/trainer.h; nothing is computed.
#pragma once

#include <memory>

#include "models/families/model.h"
#include "runtime/daemon/loop/event_loop.h"
#include "runtime/training/trainer.h"

namespace rumor::daemon {

class FollowerTrainer final : public Trainer {
 public:
  // The model in `config` (run file) at rows that `data` describes. Errors: those of models::make_model.
  static Result<std::unique_ptr<FollowerTrainer>> create(const RunConfig& config, const models::DataSet& data);

  const ParamLayout& layout() const override { return model_->layout(); }
  LargeVector<std::int32_t> initial_weights() const override;
  bool computes_at_shared_weights() const override { return false; }
  std::span<const float> residual() const override { return {}; }
  Bytes optimizer_state() const override { return {}; }
  // Errors: Errc::mismatch for the state of a peer that trains: it would be lost with the next checkpoint.
  Result<void> restore(std::span<const float> residual, BytesView optimizer_state) override;
  compress::CompressorStats compression() const override { return {}; }
  MemoryUse memory() const override { return {}; }
  StepResult step(const StepPlan& plan) override;
  bool evaluates() const override { return false; }
  models::Evaluation evaluate(std::span<const float> weights, std::uint32_t rows_max) override;

  void follow(Replica& replica) override;
  void expect(Replica&, InFlightView&) override {}
  void lift(Replica&, InFlightView&) override {}
  void set_parallel(Parallel* parallel) override { parallel_ = parallel; }
  Parallel& parallel() override { return parallel_ != nullptr ? *parallel_ : alone_; }

 private:
  FollowerTrainer(std::unique_ptr<models::Model> model, std::uint64_t seed, int grid_bits)
      : model_(std::move(model)), seed_(seed), grid_bits_(grid_bits) {}

  std::unique_ptr<models::Model> model_;
  std::uint64_t seed_;
  int grid_bits_;
  Serial alone_;
  Parallel* parallel_ = nullptr;
};

// The training of a peer that follows without data. Start weights and tokenizer, if the run has them, are read as for a
// peer that trains: they are part of the run's name. Errors: those of FollowerTrainer::create, load_start_weights and
// reading the tokenizer.
Result<Training> follower_training(const RunConfig& config);

// The training that `options` ask for, of a peer that serves no stage: follower_training(), or where it trains or needs
// the data to follow, built_in_training().
Result<Training> own_training(const PeerOptions& options, const NodeId& node);

}  // namespace rumor::daemon
