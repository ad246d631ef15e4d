// SwarmRun: the phases of one swarm run, and how each kind of fault is done to the world. Used by swarm.cc
// alone.
#pragma once

#include <memory>

#include "runtime/sim/hostile.h"
#include "runtime/sim/swarm.h"

namespace rumor::sim {

class SwarmRun {
 public:
  explicit SwarmRun(const SwarmRequest& request);

  SwarmReport run();
  ProtocolWorld& world() { return world_; }

 private:
  // Phases (swarm.cc).
  void set_up();
  void schedule_publishing(HostId i, Duration every, TimePoint until, bool waves);
  void schedule_checkpoints(HostId i);
  void schedule_attackers();
  void watch();
  void heal();
  std::string state_text() const;
  void converge();
  void quiet_phase();
  void settle();
  void say_goodbye();

  // Faults (swarm_faults.cc).
  void act(const FaultAction& action);
  void stop_for(HostId i, const FaultAction& action, bool silently);
  void start_again(HostId i, DiskFault fault);
  void clone(const FaultAction& action);
  void partition(const FaultAction& action);
  void upset_clock(const FaultAction& action);
  void upset_connection(const FaultAction& action);
  void upset_host(const FaultAction& action);
  void join_storm(const FaultAction& action);

  void after(Duration wait, std::function<void()> call);
  std::vector<std::string> contacts() const;
  TimePoint chaos_end() const { return TimePoint{plan_.warm_up + plan_.chaos}; }

  SwarmRequest request_;
  SwarmPlan plan_;
  ProtocolWorld world_;
  Checkers checkers_;
  SwarmReport report_;
  bool chaos_ = true;  // faults may still begin
  std::uint64_t partitions_ = 0;
};

}  // namespace rumor::sim
