// RunProbe: learns from a seed which run it trains, before a peer of that run can be made (PROTOCOL.md 6.7).
//
// It dials the seeds with a greeting for a run that does not exist. The refusal names the seed's run, its parts, and
// the weights that it began with. A seed that cannot be reached is dialled again.
//
// Thread: the caller's, which waits. Memory: small.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/time.h"
#include "runtime/base/types.h"

namespace rumor::daemon {

struct FoundRun {
  RunId run;
  std::string name;
  std::vector<std::uint32_t> parts;  // RunPart::hash of each
  Bytes start;                       // a StartNote
};

// The run of the seed that answers first. Errors: Errc::not_found: none did within this time, or before gives_up() was
// true, with the reason of each; Errc::mismatch: one answered something else, such as that it speaks another version.
Result<FoundRun> ask_for_run(const std::vector<std::string>& seeds, Duration patience,
                             const std::function<bool()>& gives_up);

}  // namespace rumor::daemon
