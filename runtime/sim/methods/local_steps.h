// Averaging of models: each peer takes some steps by itself, then an outer step is taken on the mean of their changes
// (outer_step.h). One step of each and a plain mean is `sync` as it always was; see methods.h.
//
// Thread: a plain function, one thread. Memory: the model a few times, and an optimizer for each peer.
#pragma once

#include "runtime/sim/methods/method_setting.h"
#include "runtime/sim/methods/outer_step.h"

namespace rumor::sim {

// Errors: Errc::not_finite; Errc::usage when nobody ever stays for a round.
Result<SimResult> average_models(const MethodSetting& in, const OuterRule& rule);

}  // namespace rumor::sim
