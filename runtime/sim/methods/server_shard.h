// ServerShard: a part of the model at its parameter server, which applies what workers push in the order of arrival.
//
// As in Downpour SGD (Dean, Corrado, Monga, Chen, Devin, Le, Mao, Ranzato, Senior, Tucker, Yang, Ng, NIPS 2012, section
// 4.1): a worker's gradient was computed at the weights it fetched, and meanwhile others may have pushed theirs. It is
// applied all the same; how many they were is its staleness. Shards know nothing of each other.
//
// Thread: one owner. Memory: the moments of an optimizer, and a change.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/optimizers/optimizer.h"

namespace rumor::sim {

class ServerShard {
 public:
  // `weights`: this part of the model; must outlive it. Requires: `optimizer` is for as many parameters.
  ServerShard(std::span<float> weights, std::unique_ptr<models::Optimizer> optimizer)
      : weights_(weights), optimizer_(std::move(optimizer)), change_(weights.size()) {}

  std::span<const float> weights() const { return weights_; }
  // Number of pushes that the weights hold.
  std::uint64_t version() const { return version_; }

  // Steps on `gradient`, computed at the weights of `version`. Returns its staleness.
  std::uint64_t push(std::span<const float> gradient, std::uint64_t version, double rate) {
    optimizer_->step(gradient, rate, change_, weights_);
    for (std::size_t p = 0; p < weights_.size(); ++p) weights_[p] += change_[p];
    return version_++ - version;
  }

 private:
  std::span<float> weights_;
  std::unique_ptr<models::Optimizer> optimizer_;
  std::vector<float> change_;
  std::uint64_t version_ = 0;
};

}  // namespace rumor::sim
