// Trainer: who computes, as a replica sees it. It hands over local change, step by step, and receives remote change.
//
// The built-in models are one user of this interface (runtime/training/model_trainer.h), a training loop of another
// program is another (runtime/training/outside_trainer.h): the replica does not care.
//
// The node decides when a step may start; the driver says where it runs (a worker thread, a thread of another program,
// or in place in the simulator). The trainer's memory (float view, gradient, residual, optimizer state, activations)
// belongs to whoever runs step() or evaluate() from the StartStep / StartEvaluation effect until the node is told the
// result, and to the protocol thread otherwise. No locks: ownership passes with the effect.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compress/payload/apply.h"
#include "compress/select/compressor.h"
#include "models/families/model.h"
#include "runtime/base/large_vector.h"
#include "runtime/training/memory_use.h"

namespace rumor {

class InFlightView;
class Neighbourhood;
class Replica;

// What a step is told.
struct StepPlan {
  double rate = 0;  // this peer's share of the learning rate
  double density = 0.001;  // not used where the run file has a budget in bytes
  std::uint64_t period = 0;
  double seconds = 0;  // since the last step began; 0: there was none
  bool hold = false;   // no update: the change waits in the residual
  // What others changed since the last step began; only where the optimizer asks for it.
  std::vector<compress::SparseUpdate> others = {};
  std::size_t peers = 1;  // live ones, this one too
  bool survey = false;    // look at all that waits, too: a pass over all parameters
  // Of a trainer with a model of its own: no update while what waits has at most this squared norm; 0: always one.
  double drift_bound = 0;
  // Of such a one: how many others it asks what they predict, after learn_from().
  std::size_t teachers = 0;

  // Its arithmetic, in forward passes: the way back is two of them, to ask a teacher is one.
  static constexpr std::int64_t own_passes = 3;
  std::int64_t passes() const { return own_passes + static_cast<std::int64_t>(teachers); }
};

// What it brings back.
struct StepResult {
  bool held = false;  // as planned, or it has not drifted; there is no update then
  compress::SparseUpdate update;
  Bytes payload;  // the canonical encoding of `update`
  std::uint64_t period = 0;
  std::uint32_t samples = 0;
  double loss = 0;      // mean over the batch
  std::string failure;  // empty, or why training cannot go on (a non-finite gradient)
  std::optional<compress::CompressorStats> compression;  // where the plan says so, and nothing failed
};

class Trainer {
 public:
  virtual ~Trainer() = default;

  virtual const ParamLayout& layout() const = 0;
  virtual LargeVector<std::int32_t> initial_weights() const = 0;

  // ---- between steps, on the protocol thread ----
  // Also during a step: the replica has taken what came as this payload. Who brings updates elsewhere may begin to,
  // without touching what a step uses.
  virtual void arrived(const std::shared_ptr<const Bytes>& /*payload*/) {}
  // Remote change: the view shows what the replica took since the last call.
  virtual void follow(Replica& replica) = 0;
  // After follow(): for a step the view shows what is expected of others on top, for an evaluation the weights alone.
  virtual void expect(Replica& replica, InFlightView& in_flight);
  virtual void lift(Replica& replica, InFlightView& in_flight);
  // The weights as floats, where they lie in this machine's memory; else there are none.
  virtual compress::FloatView view() { return {}; }
  // Whether it keeps the weights themselves elsewhere, too. Then those of the replica have time.
  virtual bool keeps_weights() const { return false; }
  // Whether it computes at the shared weights, with the rate of the plan. Then the view runs ahead of the replica by
  // what others are expected to do (runtime/exchange/in_flight_view.h), and the rate is braked where updates come late.
  virtual bool computes_at_shared_weights() const { return true; }
  // Whether its model is one of its own: the weights that follow() shows it, its public copy, and what waits
  // (runtime/exchange/neighbourhood.h). view() shows that model then. Of draw() and learn_from() the mode calls one.
  virtual bool has_own_model() const { return false; }
  // After follow(): what the next step adds to its model besides its own (Neighbourhood::pull). Requires:
  // has_own_model().
  virtual void draw(const Neighbourhood& /*neighbours*/, double /*share*/) {}
  // After follow(): the weights of those whose predictions the next step is drawn to, besides the labels; copied.
  // Requires: has_own_model().
  virtual void learn_from(std::span<const std::span<const std::int32_t>> /*teachers*/) {}
  // Whether StepPlan.others is looked at.
  virtual bool wants_changes_of_others() const { return false; }
  // What it has learned and not yet handed over, one float a parameter.
  virtual std::span<const float> residual() const = 0;
  // What else a restart needs; opaque.
  virtual Bytes optimizer_state() const = 0;
  // Errors: Errc::corrupt.
  virtual Result<void> restore(std::span<const float> residual, BytesView optimizer_state) = 0;
  // A pass over all parameters, on the caller's thread; within a step StepPlan.survey asks for the same.
  virtual compress::CompressorStats compression() const = 0;
  // All but in_flight and log; weights and entries as far as they are the trainer's own.
  virtual MemoryUse memory() const = 0;
  // Of a step's forward pass, about.
  virtual std::uint64_t multiply_adds() const { return 0; }
  // For passes over all parameters, and what else it can spread; null: the caller's thread. Must outlive its use.
  virtual void set_parallel(Parallel* parallel) = 0;
  virtual Parallel& parallel() = 0;

  // ---- wherever the driver runs compute ----
  // Local change.
  virtual StepResult step(const StepPlan& plan) = 0;
  // Whether there is a test set; without one evaluate() is not called.
  virtual bool evaluates() const { return true; }
  // Loss and accuracy on the test set, of these weights or, where there are none, of those that the view shows; at most
  // `rows_max` of its rows, from the first.
  virtual models::Evaluation evaluate(std::span<const float> weights, std::uint32_t rows_max) = 0;
};

}  // namespace rumor
