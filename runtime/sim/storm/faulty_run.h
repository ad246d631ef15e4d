// FaultyRun: a world, the faults that strike it and the checkers that watch it: what the protocol alone
// (storm.cc) and training (training_storm.cc) have in common.
//
// Thread: one owner.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/sim/storm/hostile.h"
#include "runtime/sim/storm/storm.h"

namespace rumor::sim {

class FaultyRun {
 public:
  FaultyRun(const StormRequest& request, StormPlan plan);
  virtual ~FaultyRun() = default;
  FaultyRun(const FaultyRun&) = delete;

 protected:
  // Counts of the faults that a report names.
  struct Strikes {
    std::uint64_t actions = 0, resets = 0, restarts = 0, partitions = 0;
  };

  // ---- phases (faulty_run.cc) ----
  void start_hosts();
  void start_attackers();
  // Every two virtual seconds: the weights of one host in full.
  void watch_weights();
  // The faults are over; hosts that are down come back, but for those that are dead for good.
  void heal();
  bool find_each_other_without_the_dead() const;
  // All take leave, and nothing stays open.
  void say_goodbye();
  void await_mesh();
  // One line about each host, for a liveness failure.
  std::string state_text() const;
  // The time in which slow links carry everything twice.
  Duration carrying_time() const;
  void fill(StormReport& report) const;

  // ---- faults (storm_faults.cc) ----
  void act(const FaultAction& action);
  void stop_for(HostId i, const FaultAction& action, bool silently);
  void start_again(HostId i, DiskFault fault);
  void clone(const FaultAction& action);
  // Takes down the processes that gave way to another with their key; hosts that may live start again.
  void end_superseded();
  void watch_clone();
  void partition(const FaultAction& action);
  void upset_clock(const FaultAction& action);
  void upset_connection(const FaultAction& action);
  void upset_host(const FaultAction& action);
  void join_storm(const FaultAction& action);
  // Schedules the work that a host does by the world's clock, from the beginning on.
  virtual void schedule_work(HostId) {}
  // Schedules own updates of a host, where the world asks for them.
  virtual void schedule_publishing(HostId, Duration /*every*/, TimePoint /*until*/, bool /*waves*/) {}

  void after(Duration wait, std::function<void()> call);
  std::vector<std::string> contacts() const;
  TimePoint chaos_end() const { return TimePoint{plan_.warm_up + plan_.chaos}; }

  StormRequest request_;
  StormPlan plan_;
  ProtocolWorld world_;
  Checkers checkers_;
  Strikes strikes_;
  bool chaos_ = true;  // faults may still begin

 private:
  std::uint64_t partitions_ = 0;
};

}  // namespace rumor::sim
