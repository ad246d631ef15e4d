// Learners: the peers of a training method that only the simulator has. Each has its own data and speed; all share one
// model's arithmetic.
//
// Learners lack the rest of a whole peer (runtime/node/node.h): protocol, replica, residual. A baseline needs only
// gradients and their cost.
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
  // Makes options.nodes learners. `config` must outlive them. Errors: Errc::usage for a model, optimizer or shard that
  // does not fit.
  static Result<Learners> create(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                                 const ClusterOptions& options);

  std::size_t count() const { return samplers_.size(); }
  std::uint32_t params() const { return layout().params(); }
  const ParamLayout& layout() const { return model_->layout(); }
  // The weights with which all learners start, [params].
  const std::vector<float>& start() const { return start_; }
  // Rows of the training set that learner i holds.
  std::uint32_t rows(std::size_t i) const { return samplers_[i].rows(); }

  // Mean gradient over the next mini-batch of learner i at `weights`; both [params].
  void gradient(std::size_t i, std::span<const float> weights, std::span<float> out);
  // For methods that need more than the gradient: the next mini-batch of learner i (valid until the one after), the
  // model, the data.
  models::Batch batch(std::size_t i) { return samplers_[i].next(); }
  models::Model& model() { return *model_; }
  const models::DataSet& data() const { return *data_; }
  // A new optimizer as the run file configures it, with moments of its own.
  std::unique_ptr<models::Optimizer> optimizer() const;
  // The run file's learning rate at `progress` in [0, 1]. It is that of the whole run, not divided among the peers.
  double rate(double progress) const { return config_->rate * config_->schedule.factor(progress); }
  // Duration of a step of learner i: its own step time, varied at random by up to a tenth.
  Duration step_time(std::size_t i);
  // Evaluates on the whole test set.
  models::Evaluation evaluate(std::span<const float> weights) const;

 private:
  Learners(const RunConfig& config, const ClusterOptions& options)
      : config_(&config), options_(options), step_costs_(Prng::named(options.seed, "steps")) {}

  Result<std::unique_ptr<models::Optimizer>> make_optimizer() const;

  const RunConfig* config_;
  ClusterOptions options_;
  std::shared_ptr<const models::DataSet> data_;
  std::unique_ptr<models::Model> model_;
  std::vector<models::BatchSampler> samplers_;
  std::vector<float> start_;
  Prng step_costs_;
};

}  // namespace rumor::sim
