// MatrixStep: a step of Muon (models/optimizers/muon.h) as numbers and places. A StepRule says the same of a step that
// takes each parameter by itself (runtime/base/step_rule.h).
//
// Muon takes such steps on the CPU, gpu/optimizers/optimizer.h takes them on a GPU:
//   1. Each hidden matrix: the momentum V <- momentum V + G, and the direction O = NewtonSchulz(G + momentum V).
//   2. Each hidden matrix: the change step_rule::sgdw(of(matrix), O, W).
//   3. Each stretch: the change step_rule::adamw(others, ...).
//
// Moments: the optimizer's first vector has V, and the first moments of the stretches, at each parameter's own place.
// Its second vector has the second moments of the stretches, without gaps.
//
// Thread: plain values, and views of an optimizer's memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "models/optimizers/hidden_matrices.h"
#include "runtime/base/step_rule.h"

namespace rumor::models {

struct MatrixStep {
  // Neighbouring parameters in no hidden matrix. `second`: where the second moment of the first of them lies.
  struct Stretch {
    std::uint32_t begin = 0, end = 0, second = 0;
    std::uint32_t size() const { return end - begin; }
  };

  double rate = 0, weight_decay = 0;
  float momentum = 0;  // of hidden matrices
  StepRule others;     // AdamW's; its pointers are null
  std::span<const HiddenMatrix> matrices;  // in order
  std::span<const Stretch> stretches;      // in order: all that is in no matrix

  // The factors of a direction and of the weights; the pointers are null.
  StepRule of(const HiddenMatrix& matrix) const {
    const double longer = std::max(matrix.rows, matrix.cols);
    return {.factor = static_cast<float>(-rate * 0.2 * std::sqrt(longer)),
            .decay = static_cast<float>(-rate * weight_decay)};
  }
};

}  // namespace rumor::models
