// AdaptiveRevision: a learning rate for each parameter, revised by the changes of other peers during the computation of
// a gradient (McMahan, Streeter 2014, "Delay-Tolerant Algorithms for Asynchronous Distributed Online Learning").
//
// In the paper a server keeps for each parameter z and its maximum z', both 1 at first, and the sum of all gradients.
// When a gradient g arrives, b is the sum of the gradients that arrived since its weights were read:
//   before = rate / sqrt(z');  z += g g + 2 g b;  z' = max(z', z);  after = rate / sqrt(z')
//   weight -= after g,  and  weight += (before - after) b:  the steps taken meanwhile were too long
//
// Here there is no server: each peer keeps z of its own gradients, and knows b when it begins its next step. So a step
// is taken as if b were 0, and remembered. The next step corrects it where changes have arrived. After that, every
// parameter has the value of the paper's rule. Other peers send changes of weights, not gradients. Their learning
// rates are assumed to equal one's own: b = -change / before.
//
// Thread: plain functions on the optimizer's state.
#pragma once

#include <cstdint>
#include <span>

namespace rumor::models {

struct RevisionState {
  std::span<float> z, top;  // without the last gradient
  std::span<float> last;    // the last gradient; 0 where it is in z already
};

// index[e]: a parameter that others changed since the last step began, each once. change[e], in: its change by others;
// out: the change to add to one's own instead. Requires: indices below the state's size, rate > 0.
void revise(const RevisionState& state, double rate, std::span<const std::uint32_t> index,
            std::span<float> change);

}  // namespace rumor::models
