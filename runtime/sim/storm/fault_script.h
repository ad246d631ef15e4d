// FaultScript: the faults that strike a simulated network, drawn from one number.
//
// Each seed first draws which kinds of fault are enabled (each with probability 1/2) and how often they
// strike, then a list of actions. The list is plain data: what fails can be run again with kinds, actions or
// hosts left out, and everything else stays as it was.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/sim/world/protocol_world.h"

namespace rumor::sim {

enum class FaultKind : std::uint8_t {
  crash,             // a process ends, its connections are closed; it comes back
  crash_in_effects,  // the same between two effects of one handler
  power_off,         // nobody is told
  clone,             // a second process with the same key and a copy of the disk
  pause,             // no instruction is run for a while (SIGSTOP)
  slow_processor,
  clock_jump,
  clock_drift,
  clock_stop,
  halves,        // partitions: two sides,
  one_apart,     // one against all,
  ring,          // each with two neighbours only,
  bridge,        // two sides and one host that sees both,
  one_way,       // from one host to another nothing arrives, back it does
  reset,         // of one connection, which loses what was last on its way
  stall,         // one direction of one connection
  half_open,     // one direction, or both, swallow everything from now on
  throttle,      // a host has a twentieth of its bandwidth
  refuse,        // a host refuses connections
  hang,          // connections to a host neither open nor fail for 5 s
  join_storm,    // several hosts start at once
  leave,         // with a goodbye; comes back
  disk_lost,     // what a restart finds: nothing,
  disk_stale,    // an older checkpoint,
  disk_torn,     // half of one,
  disk_flipped,  // one with a bit flipped,
  disk_foreign,  // that of another host
  random_bytes,  // hostile hosts (hostile.h)
  flipped_bits,
  false_have,
  withholds,
  floods,
  disk_full,  // nothing can be written for a while; only drawn for training
  count
};
inline constexpr std::size_t fault_kinds = static_cast<std::size_t>(FaultKind::count);

std::string_view fault_name(FaultKind kind);
// Errors: Errc::usage, naming the nearest.
Result<FaultKind> fault_named(const std::string& name);

using FaultSet = std::uint64_t;  // bit per kind
constexpr FaultSet fault_bit(FaultKind kind) {
  return FaultSet{1} << static_cast<unsigned>(kind);
}
inline constexpr FaultSet all_faults = (FaultSet{1} << fault_kinds) - 1;

struct FaultAction {
  FaultKind kind = FaultKind::crash;
  TimePoint at;
  Duration lasts{};
  HostId host = 0, other = 0;
  std::uint64_t value = 0;  // meaning by kind
  DiskFault disk = DiskFault::none;
  std::uint32_t number = 0;  // in the draw
};

// The part of the draw that a run keeps: for replaying and shrinking.
struct StormRequest {
  std::uint64_t seed = 1;
  std::size_t nodes = 0;            // 0: drawn
  FaultSet allowed = all_faults;    // of those that the seed enables
  FaultSet forced = 0;              // enabled whatever the seed says
  std::vector<std::uint32_t> only;  // actions by number; empty: all
  bool no_actions = false;          // `only` is meant to be empty
  Duration chaos{0};                // not longer than this, when not 0
  // Not 0: a training run that takes so long when all goes well; the faults are fitted to it, and network, model and
  // work are not drawn.
  Duration training{0};
};

struct StormPlan {
  std::size_t nodes = 0;
  HostId clone = 0, attackers_from = 0;
  std::size_t attackers = 0;
  WorldOptions world;
  std::vector<SimModel> runs;  // host i is of run i modulo their number; empty: all are of the one in `world`
  Duration warm_up{}, chaos{};
  std::vector<TimePoint> starts;        // by node
  std::vector<Duration> publish_every;  // by node; 0: never
  Duration burst{0}, silence{0};        // publishing comes in bursts, when not 0
  Duration checkpoint_every{};
  FaultSet enabled = 0;
  std::vector<FaultAction> actions;
  std::size_t dead_for_good = 0;  // of the nodes, when the faults end; but for one seed, where it is needed still
  std::int64_t pace_millionths = 1'000'000;  // of the times that faults take, where a run is short

  Duration paced(Duration time) const { return time * pace_millionths / 1'000'000; }
};

StormPlan draw_plan(const StormRequest& request);

}  // namespace rumor::sim
