// TailAverage: the mean of a run's weights over its last samples, made afterwards from the log.
//
// Averaging the end of a run takes out most of the noise that the learning rate leaves in the weights (Polyak,
// Juditsky, SIAM J. Control Optim. 1992; of neural networks: Izmailov et al., UAI 2018). It costs nothing while the run
// trains, since every version of the weights is the last one less the updates that came after it:
//
//   mean = weights - sum over the updates u of the tail, newest first: (1 - n(u) / n) u
//
// n(u): samples of u and of all that arrived after it; n: samples of the tail. A version counts by the samples of the
// update that made it.
//
// Thread: plain functions. Memory: 12 bytes a parameter, and one update at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/replica/replica.h"
#include "runtime/replica/run_form.h"
#include "runtime/replica/update_log.h"

namespace rumor {

struct TailAverage {
  std::vector<float> weights;
  std::uint64_t samples = 0;  // of the tail: fewer than were asked for where the log does not go back so far
};

// Updates in the log that `state` does not have count for nothing.
// Errors: Errc::corrupt for an update that the disk no longer returns as it was written.
// Requires: samples >= 1, and the log is of the same run.
Result<TailAverage> tail_average(const RunForm& form, const ReplicaState& state, const UpdateLog& log,
                                 std::uint64_t samples);

}  // namespace rumor
