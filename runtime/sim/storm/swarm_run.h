// SwarmRun: the phases of one swarm run of the protocol alone. Used by swarm.cc alone.
#pragma once

#include "runtime/sim/storm/faulty_run.h"

namespace rumor::sim {

class SwarmRun final : private FaultyRun {
 public:
  explicit SwarmRun(const SwarmRequest& request);

  SwarmReport run();
  ProtocolWorld& world() { return world_; }

 private:
  // Phases (swarm.cc).
  void schedule_work(HostId i) override;
  void schedule_publishing(HostId i, Duration every, TimePoint until, bool waves) override;
  void schedule_checkpoints(HostId i);
  void converge();
  void quiet_phase();
  void settle();

  SwarmReport report_;
};

}  // namespace rumor::sim
