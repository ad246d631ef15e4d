// TrainedStorm: the phases of a storm in which nodes train: faults until nine tenths of the run are trained, then
// healing, and the rest of the run. Used by training_storm.cc and staged_storm.cc alone.
//
// Thread: one owner.
#pragma once

#include "runtime/sim/storm/faulty_run.h"

namespace rumor::sim {

class TrainedStorm : public FaultyRun {
 protected:
  TrainedStorm(const StormRequest& request, StormPlan plan, std::uint64_t samples_wanted);

  // `command` is what the replay line begins with.
  StormReport run_storm(const std::string& command);

  // How often which faults struck, into a SimResult or a StagedResult.
  template <class Result>
  void put_strikes(Result& result) const {
    result.link_resets = strikes_.resets;
    result.restarts = strikes_.restarts;
    result.partitions = strikes_.partitions;
    result.strikes = strikes_.actions;
  }

  // The most that a node has seen.
  virtual std::uint64_t samples() const = 0;
  // Every node that is up has nothing more to train.
  virtual bool complete() const = 0;
  // Shows how far the run is. False: somebody wants it to stop.
  virtual bool show() = 0;
  // The last chance to read results before all take leave. Nothing is violated.
  virtual void conclude() = 0;

  bool stopped_ = false;  // by show()

 private:
  bool watch();
  void train_to_the_end();

  std::uint64_t samples_wanted_;
  StormReport report_;
};

}  // namespace rumor::sim
