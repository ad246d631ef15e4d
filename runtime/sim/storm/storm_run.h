// StormRun: the phases of one storm with the protocol alone. Used by storm.cc alone.
#pragma once

#include "runtime/sim/storm/faulty_run.h"

namespace rumor::sim {

class StormRun final : private FaultyRun {
 public:
  explicit StormRun(const StormRequest& request);

  StormReport run();
  ProtocolWorld& world() { return world_; }

 private:
  // Phases (storm.cc).
  void schedule_work(HostId i) override;
  void schedule_publishing(HostId i, Duration every, TimePoint until, bool waves) override;
  void schedule_checkpoints(HostId i);
  void converge();
  void quiet_phase();
  void await_agreement();

  StormReport report_;
};

}  // namespace rumor::sim
