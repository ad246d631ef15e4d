// StageTrainer: trains a part of a model with the gradients that a pipeline collects. A step takes the mean
// gradient of a StageWorker, and goes on as any step of a built-in model does: optimizer, residual,
// selection, payload.
//
// Thread: one owner.
#pragma once

#include <memory>

#include "runtime/stages/stage_worker.h"
#include "runtime/training/model_trainer.h"

namespace rumor {

// The options of a worker that [pipeline] of a run file asks for.
StageOptions stage_options(const RunConfig& config);

// A node's trainer, and what its pipeline drives. Both pointers are valid as long as the trainer.
struct StageTrainer {
  std::unique_ptr<ModelTrainer> trainer;
  StageWorker* worker = nullptr;
  gossip::MakeStep* complete = nullptr;  // of the next step(): set it before

  // `config.model.units` is the stage's part; config.batch is the rows of all micro-batches of a step.
  // Errors: those of ModelTrainer::create() and StageWorker::create().
  static Result<StageTrainer> create(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                                     models::Shard shard, std::uint64_t sampling_seed);
};

}  // namespace rumor
