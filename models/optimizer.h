// Optimizers: from a gradient to the local change that goes into the residual.
//
// The change is what would be added to the weights: delta = -rate * direction. State (moments) is local, saved in
// checkpoints, never sent.
//
// Thread: one caller at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::models {

struct OptimizerConfig {
  std::string kind = "sgd";   // sgd | momentum | rmsprop | adam
  double momentum = 0.9;      // momentum, adam (beta1)
  double beta2 = 0.999;       // rmsprop, adam
  double epsilon = 1e-8;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // delta[i] = -rate * direction(gradient)[i]. gradient and delta may be the same memory.
  virtual void step(std::span<const float> gradient, double rate, std::span<float> delta) = 0;
  // Opaque state for a checkpoint, and back. load errors: Errc::corrupt.
  virtual Bytes save() const = 0;
  virtual Result<void> load(BytesView state) = 0;
};

// Errors: Errc::usage naming the known kinds.
Result<std::unique_ptr<Optimizer>> make_optimizer(const OptimizerConfig& config, std::uint32_t params);

// Learning rate over a run: linear warm-up, then cosine to `floor` of the peak.
// progress: 0 at the start of the run, 1 at its end, clamped. Equal bits everywhere (no libm).
struct Schedule {
  double warmup = 0.05;
  double floor = 0.01;
  double factor(double progress) const;
};

}  // namespace rumor::models
