// StagedRun: a model that is cut into stages, trained in virtual time (gossip/PIPELINE.md), with the faults that the
// options ask for.
//
// One seed gives one trace. Thread: one owner; no threads inside.
#pragma once

#include <memory>

#include "runtime/sim/cluster/injected_faults.h"
#include "runtime/sim/stages/staged_peers.h"

namespace rumor::sim {

class StagedRun {
 public:
  // Errors: those of StagedPeers::create(); Errc::usage for settings that stages do not have.
  static Result<std::unique_ptr<StagedRun>> create(const RunConfig& config,
                                                   std::shared_ptr<const models::DataSet> data,
                                                   ClusterOptions options);

  // Until the first stage has seen the run's samples, and every replica has converged. Errors: Errc::diverged,
  // Errc::not_finite, Errc::io (a node ended by itself, an invariant is broken, the run stands still).
  Result<StagedResult> run(const Progress& progress);

  // ---- for scenarios in tests: drive it piece by piece ----
  void run_until(TimePoint until) { world_.run_until(until); }
  void set_step_factor(HostId i, double factor) { peers_->set_step_factor(i, factor); }
  TimePoint now() const { return world_.now(); }
  const StagedPeers& peers() const { return *peers_; }
  const ProtocolWorld& world() const { return world_; }

 private:
  StagedRun(std::unique_ptr<StagedPeers> peers, std::uint64_t samples, ClusterOptions options);
  WorldOptions world_options();
  InjectedFaults::Run run_under_faults();
  void start();
  std::optional<Error> failure() const;
  Result<StagedResult> conclude();

  ClusterOptions options_;
  std::uint64_t samples_wanted_;
  std::unique_ptr<StagedPeers> peers_;
  ProtocolWorld world_;
  InjectedFaults faults_;
  bool stopped_early_ = false;
};

}  // namespace rumor::sim
