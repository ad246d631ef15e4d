#include "models/optimizers/adaptive_revision.h"

#include "runtime/base/check.h"
#include "runtime/base/step_rule.h"

namespace rumor::models {

void revise(const RevisionState& state, double rate, std::span<const std::uint32_t> index,
            std::span<float> change) {
  RUMOR_CHECK(index.size() == change.size());
  const auto peak = static_cast<float>(rate);
  for (std::size_t e = 0; e < index.size(); ++e) {
    const std::uint32_t i = index[e];
    RUMOR_CHECK(i < state.z.size());
    const float gradient = state.last[i], square = gradient * gradient;
    const float before = peak / step_rule::square_root(state.top[i]);
    // The rate with which the step was taken.
    const float taken = peak / step_rule::square_root(step_rule::larger(state.top[i], state.z[i] + square));
    const float others = -change[e] / before;
    const float product = gradient * others;
    state.z[i] = state.z[i] + square + (product + product);
    state.top[i] = step_rule::larger(state.top[i], state.z[i]);
    state.last[i] = 0;
    const float after = peak / step_rule::square_root(state.top[i]);
    change[e] = (taken - after) * gradient + (before - after) * others;
  }
}

}  // namespace rumor::models
