// Trainer: trains a peer's model. The node gives it remote change through its View, and takes local change from step().
//
// Implementations: a built-in model on this machine's processor (runtime/training/model_trainer.h) or on its GPUs
// (device_trainer.h), and the training loop of another program (outside/outside_trainer.h). The node does not tell them
// apart.
//
// The node decides when a step may start; the driver decides where it runs: a worker thread, a thread of another
// program, or in place in the simulator. The trainer's memory (float view, gradient, residual, optimizer state,
// activations) has one owner at a time. From the effect StartStep or StartEvaluation until the node gets the result,
// that is the caller of step() or evaluate(); otherwise the protocol thread. Ownership passes with the effect, so there
// are no locks. Single weights of the replica may be read at any time, as they are then (compress::WeightView).
#pragma once

#include <memory>
#include <span>

#include "models/families/model.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/types.h"
#include "runtime/training/memory_use.h"
#include "runtime/training/step.h"
#include "runtime/training/view.h"

namespace rumor {

class OwnModel;
namespace models {
struct DataSet;
}

class Trainer : public View {
 public:
  virtual const ParamLayout& layout() const = 0;
  virtual LargeVector<std::int32_t> initial_weights() const = 0;

  // ---- how it trains ----
  // Null, or the model that this peer has for itself (runtime/training/own_model.h); view() shows that model.
  virtual OwnModel* own_model() { return nullptr; }
  // Whether gradients are computed at the shared weights, with the learning rate of the plan. Then the view runs ahead
  // of the replica (runtime/exchange/in_flight_view.h), and the node brakes the rate where updates come late.
  virtual bool computes_at_shared_weights() const { return true; }
  // Whether a step can be as long as StepPlan::batches.
  virtual bool takes_batches() const { return false; }
  // Whether a step can be one of StepPlan::flush.
  virtual bool flushes() const { return false; }
  // The training data of a trainer whose steps anybody can make again, bit for bit, from their records
  // (runtime/AUDIT.md). Null: nobody can.
  virtual std::shared_ptr<const models::DataSet> repeatable_data() const { return nullptr; }
  // Whether a step reads StepPlan::others.
  virtual bool wants_changes_of_others() const { return false; }

  // ---- between steps, on the protocol thread: state and figures ----
  // Learned and not yet sent, one float a parameter.
  virtual std::span<const float> residual() const = 0;
  // The rest of what a restart needs; opaque.
  virtual Bytes optimizer_state() const = 0;
  // Errors: Errc::corrupt.
  virtual Result<void> restore(std::span<const float> residual, BytesView optimizer_state) = 0;
  // All that a step of a trainer with repeatable_data() takes over from the steps before, but its place in the rows and
  // a recurrent model's state there (runtime/AUDIT.md, "Segments").
  virtual Bytes carried_state() const { return {}; }
  // This peer's report of the buffers that all peers share as means, as of the last step; nothing where it has none, or
  // none has changed (outside/buffer_means.h).
  virtual Bytes buffers() const { return {}; }
  // Takes the reports of all peers, this one included. At the end optimizer_state() holds the means.
  virtual void take_buffers(const NodeBuffers& /*reports*/, bool /*at_the_end*/) {}
  // A pass over all parameters, on the caller's thread; within a step StepPlan::survey asks for the same.
  virtual compress::CompressorStats compression() const = 0;
  // All but in_flight and log; weights and entries as far as they are the trainer's own.
  virtual MemoryUse memory() const = 0;
  // Multiply-adds of a step's forward pass, about.
  virtual std::uint64_t multiply_adds() const { return 0; }
  // A step's arithmetic on pictures of StepPlan::size, as a share of that on whole ones.
  virtual double share_of_work(std::uint32_t /*size*/) const { return 1; }

  // ---- wherever the driver runs compute ----
  virtual StepResult step(const StepPlan& plan) = 0;
  // Whether there is a test set; without one evaluate() is not called.
  virtual bool evaluates() const { return true; }
  // Loss and accuracy on the first `rows_max` rows of the test set, of these weights or, where there are none, of those
  // that the view shows.
  virtual models::Evaluation evaluate(std::span<const float> weights, std::uint32_t rows_max) = 0;
};

}  // namespace rumor
