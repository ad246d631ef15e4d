// Tier: one stage of a trained model that classifies, with its exit or, at the end, its head (runtime/TIERS.md).
//
// Thread: one caller at a time. Memory: the weights of the stage, and activations of the largest batch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/data/dataset.h"
#include "models/families/model.h"
#include "runtime/run/run_config.h"

namespace rumor::tools {

class Tier {
 public:
  // `config`: of the whole model, with pipeline.stages and pipeline.exits. `data` describes the rows. `stage`: from 1.
  // `weights`: a safetensors file or folder with the tensors of this stage, as `rumor export` joins them, or the state
  // directory of a peer of this stage. Errors: those of StagePlace::create(); Errc::usage without exits; Errc::mismatch
  // naming a tensor that is missing or of another shape; those of reading.
  static Result<Tier> create(const RunConfig& config, const models::DataSet& data, std::uint32_t stage,
                             const std::string& weights);

  std::uint32_t stage() const { return stage_; }
  std::uint32_t stages() const { return stages_; }
  bool is_last() const { return stage_ == stages_; }
  // The pipeline's id: tiers fit together that have the same.
  const std::string& pipeline() const { return pipeline_; }
  std::size_t inputs() const { return inputs_; }      // floats of a view
  std::size_t features() const { return features_; }  // floats for the next tier; 0 in the last
  std::uint32_t classes() const { return model_->exit_classes(); }

  struct Computed {
    std::vector<float> probability;  // [rows, classes()], of the exit or the head
    std::vector<float> features;     // [rows, features()]
  };
  // input: [rows, inputs()].
  Computed compute(std::span<const float> input, std::uint32_t rows);

 private:
  Tier() = default;

  std::unique_ptr<models::Model> model_;
  std::vector<float> weights_;
  std::string pipeline_;
  std::uint32_t stage_ = 0, stages_ = 0;
  std::size_t inputs_ = 0, features_ = 0;
};

}  // namespace rumor::tools
