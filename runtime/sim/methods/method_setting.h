// MethodSetting: the inputs of a training method. All of them outlive the run.
#pragma once

#include "runtime/sim/cluster/training_record.h"
#include "runtime/sim/methods/absences.h"
#include "runtime/sim/methods/learners.h"

namespace rumor::sim {

struct MethodSetting {
  const RunConfig& config;
  const ClusterOptions& options;
  Learners& learners;
  const Absences& absences;
  const Progress& progress;
};

}  // namespace rumor::sim
