// Optimizers: from a gradient to the local change that goes into the residual.
//
// The change would be added to the weights: delta = -rate * direction. State (moments) is local, saved in checkpoints,
// never sent.
//
// Directions, g the gradient, moments zero at first:
//   sgd       g
//   momentum  v,                      v = momentum v + g                              (Polyak 1964)
//   rmsprop   g / (sqrt s + epsilon), s = beta2 s + (1 - beta2) g^2                   (Tieleman, Hinton 2012)
//   adam      m' / (sqrt s' + epsilon), m = momentum m + (1 - momentum) g, s as above; m', s' corrected for
//             the zero they began with                                                (Kingma, Ba 2015)
//   adamw     adam's, + weight_decay w for every weight w                             (Loshchilov, Hutter 2019)
//   nadamw    adamw's with Nesterov's look ahead: momentum m'' + (1 - momentum) g' for m', m'' corrected as at the next
//             step and g' as at this one                                              (Dozat 2016)
//   adaptive_revision  g / sqrt z', revised by what others change
// (models/optimizers/adaptive_revision.h)
//   muon      of a hidden matrix the orthogonal part of its momentum, of all else adamw's (models/optimizers/muon.h)
//
// The formulas are in runtime/base/step_rule.h.
// Bits: float throughout, + - * / and square root only, so equal gradients give equal deltas everywhere.
// Memory: sgd none, momentum and rmsprop 4 bytes a parameter, adam, adamw and nadamw 8, adaptive_revision 12, muon as
// its header says.
// Thread: one caller at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/optimizers/hidden_matrices.h"
#include "models/optimizers/matrix_step.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/parallel.h"
#include "runtime/base/result.h"
#include "runtime/base/step_rule.h"
#include "runtime/base/types.h"

namespace rumor::models {

struct OptimizerConfig {
  std::string kind = "sgd";  // sgd | momentum | rmsprop | adam | adamw | nadamw | adaptive_revision | muon
  double momentum = 0.9;     // momentum, muon; beta1 of adam, adamw and nadamw
  double beta2 = 0.999;      // rmsprop, adam, adamw, nadamw, muon (of what is no hidden matrix)
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // adamw, nadamw, muon
  double clip = 0;             // norm to which a longer gradient is cut (clip_by_norm); 0: none
  // muon: the learning rate of what is no hidden matrix, as a share of the matrices' own; and its beta1.
  double adam_share = 1;
  double adam_beta1 = 0.9;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::uint32_t params() const = 0;
  // delta[i] = -rate * direction(gradient)[i]. gradient and delta may be the same memory.
  // `weights`: where the gradient was computed; only kinds that decay weights look at them.
  // Requires: all of `params` floats; weights may be empty for other kinds than adamw, nadamw and muon.
  virtual void step(std::span<const float> gradient, double rate, std::span<float> delta,
                    std::span<const float> weights = {});
  // Whether a step is a rule that takes each parameter by itself. Muon's is not.
  virtual bool has_rule() const { return true; }
  // Whether a peer that takes several steps by itself may take them at the learning rate of all peers together
  // (runtime/training/local_steps.h).
  virtual bool bears_full_rate() const { return false; }
  // The same step as a rule, for a caller that walks over the parameters anyway (compress::Compressor::absorb_step).
  // The step counts as taken. The caller must apply the rule to every parameter, once, before any other call. It may
  // also begin several steps one after another, and apply the rules of all before any other call. The moments are the
  // optimizer's own memory. The bits are equal in both cases. Requires: has_rule().
  virtual StepRule begin_step(double rate, std::span<const float> weights = {});
  // The same for a step that is no rule: the caller takes it, on moments of its own. Requires: !has_rule().
  virtual MatrixStep begin_matrix_step(double rate);
  // The matrices of such steps.
  virtual std::span<const HiddenMatrix> matrices() const { return {}; }
  // A factor of adam_share from now on, 1 at first; other kinds than muon ignore it. Not part of save().
  virtual void scale_adam_share(double /*factor*/) {}
  // True if revise() needs the changes of other peers.
  virtual bool wants_changes_of_others() const { return false; }
  // Call before begin_step with the changes of others since its last call: parameters index[e] by change[e], each index
  // once. Out: the change to add to one's own beside the step's. Requires: wants_changes_of_others().
  virtual void revise(double rate, std::span<const std::uint32_t> index, std::span<float> change);
  // Threads for a step that is no rule; null: the caller's alone. Must outlive its use. The bits are the same for any
  // number.
  virtual void set_parallel(Parallel* /*parallel*/) {}
  virtual std::size_t memory_bytes() const = 0;
  // Where a step is a rule, one float a parameter each. The pointers of a rule lead here, and save() and load() are
  // about these.
  virtual std::span<LargeVector<float>> moments() = 0;
  // Saves and loads the opaque state for a checkpoint, without the learning rate. Errors of load: Errc::corrupt (cut
  // short, of another kind, of another size); the state then stays unchanged.
  virtual Bytes save() const = 0;
  virtual Result<void> load(BytesView state) = 0;
};

// `matrices`: the hidden matrices, for the kinds that look at them. Errors: Errc::usage naming the known kinds, the
// value that is out of range (momentum, beta2, weight_decay and adam_beta1 in [0, 1), epsilon in (0, 1), clip at least
// 0, adam_share above 0), or a model without hidden matrices for muon.
Result<std::unique_ptr<Optimizer>> make_optimizer(const OptimizerConfig& config, std::uint32_t params,
                                                  std::vector<HiddenMatrix> matrices = {});

// The Euclidean norm. Bits: squares are added in double, in one fixed order.
double euclidean_norm(std::span<const float> values);

// Cuts the gradient to this Euclidean norm where it is longer, as PyTorch's clip_grad_norm_: times
// norm_max / (norm + 1e-6) where that is below 1. Returns the norm it had. A norm that is not finite cuts nothing.
// Requires: norm_max > 0.
double clip_by_norm(std::span<float> gradient, double norm_max);

// Learning rate over a run, as a factor of its peak: linear from `floor` to 1 while progress < warmup, then
// half a cosine wave back to `floor` (Loshchilov, Hutter 2017).
// progress: 0 at the start of the run, 1 at its end, clamped. Equal bits everywhere (no libm).
// Requires: warmup and floor in [0, 1].
struct Schedule {
  double warmup = 0.05;
  double floor = 0.01;
  double factor(double progress) const;
};

}  // namespace rumor::models
