// StagedResult: what a simulated run of a model in stages has shown.
//
// Thread: plain values.
#pragma once

#include <string>
#include <vector>

#include "gossip/pipeline/pipeline.h"
#include "models/evaluate/evaluation.h"
#include "models/families/part.h"
#include "runtime/sim/record/sim_result.h"

namespace rumor::sim {

struct StageResult {
  models::UnitRange units;
  SimResult run;
  // Share of the time from the first micro-batch to the last step in which its nodes compute, their mean.
  double utilisation = 0;
  std::uint64_t counted = 0;  // micro-batches
  std::uint64_t missing = 0;  // micro-batches that the first stage has counted and this one has not
};

struct StagedResult {
  std::vector<StageResult> stages;
  models::Evaluation evaluation;  // of the whole model, with the tensors of all stages
  std::vector<CurvePoint> curve;  // of the same; its last point is the end of the run
  std::uint64_t samples = 0;      // of the first stage
  double virtual_seconds = 0;     // until the last step
  double training_seconds = 0;    // the same, from the first micro-batch
  double wall_seconds = 0;        // filled in by whoever has a clock
  std::uint64_t sim_seed = 0, trace_hash = 0;
  // Bytes on the links of all nodes: between stages by kind of frame, and all of them.
  std::uint64_t activation_bytes = 0, gradient_bytes = 0, control_bytes = 0, all_bytes = 0;
  gossip::PipelineFigures figures;  // of all nodes together, earlier lives included
  std::uint64_t link_resets = 0, restarts = 0, partitions = 0, strikes = 0;  // faults injected
  bool stopped_early = false;
};

// The sum of both, figure by figure.
void add(gossip::PipelineFigures& sum, const gossip::PipelineFigures& more);

// The object that `rumor sim --json` writes for a run in stages.
std::string to_json(const StagedResult& result);

// The same as the result of one run with the whole model, for comparison with others: all replicas of each stage are
// identical, bytes and idle time are those of a node.
SimResult as_whole(const StagedResult& result);

}  // namespace rumor::sim
