// Hogwild: worker threads that update the same weights without locks (Niu, Recht, Re, Wright 2011, "Hogwild!").
//
// A round consists of several mini-batches. A free worker takes the next one, computes its gradient at the weights it
// last saw, and adds its step to the shared change, whatever other workers added meanwhile. In the same pass it reads
// the weights again. Workers do not wait for each other within a round.
//
//   the weights a worker sees = weights at the start of the round + shared change
//
// The change is shared, not its sum with the weights: the change is the result of the round (it goes into the
// residual), and small steps do not vanish in it as they would in a weight.
//
// Shared between the workers: the change, as 64-bit atomics of two floats each, and the moments of the optimizer,
// through std::atomic_ref. All loads and stores are relaxed, so there is no data race in the sense of the language.
// Load and store are two operations: if two workers step one parameter at the same moment, one of the steps may be
// lost, as in the paper. A worker owns everything else that it writes.
//
// Bits: with one worker, those of one mini-batch after the other, on every machine; with more workers they depend on
// the threads. Memory: one float a parameter for the change, two for each worker, and its model's activations. Thread:
// one caller at a time. The workers run on the threads of set_parallel(), as many as it can run at once.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "models/data/dataset.h"
#include "models/families/model.h"
#include "models/optimizers/optimizer.h"
#include "runtime/base/large_vector.h"

namespace rumor::models {

class Hogwild {
 public:
  // `models`: one for each worker, at least one, all of one layout. clip: as OptimizerConfig has it.
  Hogwild(std::vector<std::unique_ptr<Model>> models, std::shared_ptr<const DataSet> data, double clip);

  // Threads for the workers; null: the caller's, as one worker. Must outlive its use.
  void set_parallel(Parallel* parallel) { parallel_ = parallel; }

  // Runs one round from `weights`. rows: the mini-batches, one after another, of equal size. `size`: as
  // DataSet::train_batch() has it. rules: the results of Optimizer::begin_step(rate, weights) for each, in order.
  // `change` is overwritten with the sum of their changes. Returns the mean loss. Requires: as many floats in weights
  // and change as parameters; rules not empty, their number divides that of the rows; no rule of a kind that
  // wants_changes_of_others().
  double round(std::span<const float> weights, std::span<const std::uint32_t> rows, std::uint32_t size,
               std::span<const StepRule> rules, std::span<float> change);

  // Memory of the change and of the workers' copies; memory of the workers' activations.
  std::size_t memory_bytes() const;
  std::size_t activation_bytes() const;

 private:
  struct Worker {
    std::unique_ptr<Model> model;
    BatchMemory memory;
    LargeVector<float> weights, gradient;
    double loss = 0;
  };
  struct Round {
    std::span<const float> weights;
    std::span<const std::uint32_t> rows;
    std::uint32_t size;
    std::span<const StepRule> rules;
    std::atomic<std::size_t> next{0};  // the batch that nobody has taken yet
  };

  void work(Worker& worker, Round& round);
  void look(Worker& worker, std::span<const float> weights) const;
  void step(Worker& worker, std::span<const float> weights, StepRule rule);
  template <class Formula>
  void step_by(Worker& worker, std::span<const float> weights, const Formula& formula);

  std::shared_ptr<const DataSet> data_;
  double clip_;
  std::size_t params_;
  std::vector<Worker> workers_;
  // Floats 2 i and 2 i + 1 of the change.
  std::unique_ptr<std::atomic<std::uint64_t>[]> change_;
  Parallel* parallel_ = nullptr;
};

}  // namespace rumor::models
