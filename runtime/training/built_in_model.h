// BuiltInModel: data, model, optimizer and batches as the run file has them. A trainer computes with them, on this
// machine's processor (runtime/training/model_trainer.h) or its GPU (runtime/training/device_trainer.h).
//
// Thread: one owner.
#pragma once

#include <memory>
#include <optional>

#include "compress/select/compressor.h"
#include "models/data/dataset.h"
#include "models/families/model.h"
#include "models/optimizers/optimizer.h"
#include "runtime/base/large_vector.h"
#include "runtime/run/run_config.h"
#include "runtime/training/step.h"

namespace rumor {

struct BuiltInModel {
  // `shard`: this peer's part of the data; the run file says how data are split. Errors: Errc::usage for an unknown
  // model or optimizer, Errc::limit for a shard without enough rows.
  static Result<BuiltInModel> create(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                                     models::Shard shard, std::uint64_t sampling_seed);

  const ParamLayout& layout() const { return model->layout(); }
  LargeVector<std::int32_t> initial_weights() const { return models::initial_weights(*model, seed, grid_bits); }
  std::uint32_t samples_of(const StepPlan& plan) const { return rows_of(plan) * batches_of(plan.batches); }
  // Mini-batches of a step with so many in its plan (StepPlan::batches).
  std::uint32_t batches_of(std::uint32_t planned) const { return planned > 0 ? planned : batches; }
  // Multiply-adds of a step's forward pass.
  std::uint64_t multiply_adds() const { return model->multiply_adds(rows.batch); }
  // Rows of a mini-batch of a step, and the next so many of them. Requires: a sampler.
  std::uint32_t rows_of(const StepPlan& plan) const { return rows.rows(plan.peers); }
  models::Batch next_batch(const StepPlan& plan) { return sampler->next(rows_of(plan), plan.size); }

  int grid_bits;
  BatchRules rows;        // of a mini-batch
  std::uint32_t batches;  // of a step, unless its plan has another number
  std::uint64_t seed;
  std::shared_ptr<const models::DataSet> data;
  models::ModelConfig config;  // the run file's, with what the data say of inputs and classes
  std::unique_ptr<models::Model> model;
  std::unique_ptr<models::Optimizer> optimizer;
  std::optional<models::BatchSampler> sampler;  // gives the rows of a mini-batch; with Hogwild, all of a step
  // The density is that of one peer alone; a budget in bytes is not in it.
  compress::CompressorOptions compressor;
};

// Batches differ between peers by shard; two peers on the same shard still draw in different orders.
std::uint64_t sampling_seed(const RunConfig& config, const NodeId& node);

}  // namespace rumor
