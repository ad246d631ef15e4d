// Learners: the peers of a way to train that only the simulator knows: each with data of its own and a speed of its
// own, all with one model's arithmetic.
//
// Between them and a whole peer (runtime/node/node.h) is all that Rumor is: protocol, replica, residual. A baseline
// needs none of that, only gradients and what they cost.
//
// Thread: one owner; equal seeds give equal bits. Memory: one model's activations, and the weights once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/data/dataset.h"
#include "models/optimizers/optimizer.h"
#include "runtime/sim/cluster/cluster.h"

namespace rumor::sim {

class Learners {
 public:
  // options.nodes of them. `config` must outlive it. Errors: Errc::usage for a model, optimizer or shard that does not
  // fit.
  static Result<Learners> create(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                                 const ClusterOptions& options);

  std::size_t count() const { return samplers_.size(); }
  std::uint32_t params() const { return layout().params(); }
  const ParamLayout& layout() const { return model_->layout(); }
  // What all begin with, [params].
  const std::vector<float>& start() const { return start_; }
  // Of the training set, that learner i holds.
  std::uint32_t rows(std::size_t i) const { return samplers_[i].rows(); }

  // Mean gradient over the next mini-batch of learner i at `weights`; both [params].
  void gradient(std::size_t i, std::span<const float> weights, std::span<float> out);
  // For ways that ask more of the model: that mini-batch (valid until the next of learner i), the model, the data.
  models::Batch batch(std::size_t i) { return samplers_[i].next(); }
  models::Model& model() { return *model_; }
  const models::DataSet& data() const { return *data_; }
  // The run file's, with moments of its own.
  std::unique_ptr<models::Optimizer> optimizer() const;
  // The run file's rate at `progress` in [0, 1], as it stands: the rate of the whole, not shared between peers.
  double rate(double progress) const { return config_->rate * config_->schedule.factor(progress); }
  // What a step of learner i takes: its own time, more or less by up to a tenth, drawn.
  Duration step_time(std::size_t i);
  // On the whole test set.
  models::Evaluation evaluate(std::span<const float> weights) const;

 private:
  Learners(const RunConfig& config, const ClusterOptions& options)
      : config_(&config), options_(options), step_costs_(Prng::named(options.seed, "steps")) {}

  const RunConfig* config_;
  ClusterOptions options_;
  std::shared_ptr<const models::DataSet> data_;
  std::unique_ptr<models::Model> model_;
  std::vector<models::BatchSampler> samplers_;
  std::vector<float> start_;
  Prng step_costs_;
};

}  // namespace rumor::sim
