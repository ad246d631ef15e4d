// Optimizers: from a gradient to the local change that goes into the residual.
//
// The change is what would be added to the weights: delta = -rate * direction. State (moments) is local,
// saved in checkpoints, never sent.
//
// Directions, g the gradient, moments zero at first:
//   sgd       g
//   momentum  v,                      v = momentum v + g                              (Polyak 1964)
//   rmsprop   g / (sqrt s + epsilon), s = beta2 s + (1 - beta2) g^2                   (Tieleman, Hinton 2012)
//   adam      m' / (sqrt s' + epsilon), m = momentum m + (1 - momentum) g, s as above; m', s' corrected for
//             the zero they began with                                                (Kingma, Ba 2015)
//
// The formulas stand in runtime/base/step_rule.h.
// Bits: float throughout, + - * / and square root only, so equal gradients give equal deltas everywhere.
// Memory: sgd none, momentum and rmsprop 4 bytes a parameter, adam 8.
// Thread: one caller at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/result.h"
#include "runtime/base/step_rule.h"
#include "runtime/base/types.h"

namespace rumor::models {

struct OptimizerConfig {
  std::string kind = "sgd";  // sgd | momentum | rmsprop | adam
  double momentum = 0.9;     // momentum, adam (beta1)
  double beta2 = 0.999;      // rmsprop, adam
  double epsilon = 1e-8;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual std::uint32_t params() const = 0;
  // delta[i] = -rate * direction(gradient)[i]. gradient and delta may be the same memory.
  // Requires: both of `params` floats.
  void step(std::span<const float> gradient, double rate, std::span<float> delta);
  // The same step as a rule, for whoever walks over the parameters anyway (compress::Compressor::absorb_step): the
  // step counts as taken, and the caller must apply the rule to every parameter, once, before the next call of
  // anything. Its moments are the optimizer's own memory. Equal bits either way.
  virtual StepRule begin_step(double rate) = 0;
  // Opaque state for a checkpoint, and back. The rate is not part of it. load errors: Errc::corrupt (cut
  // short, of another kind, of another size); the state then stays as it was.
  virtual Bytes save() const = 0;
  virtual Result<void> load(BytesView state) = 0;
};

// Errors: Errc::usage naming the known kinds, or the value that is out of range (momentum and beta2 in
// [0, 1), epsilon in (0, 1)).
Result<std::unique_ptr<Optimizer>> make_optimizer(const OptimizerConfig& config, std::uint32_t params);

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
