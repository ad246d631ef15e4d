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
#include "runtime/sim/stages/staged_bound.h"

namespace rumor::sim {

struct StageResult {
  models::UnitRange units;
  SimResult run;
  // Share of the time from the first micro-batch to the last step in which its nodes compute, their mean.
  double utilisation = 0;
  // Shares of the same time in which a step had nothing to compute, means of the nodes that are alive at the end: for
  // answers from above; the same, while a link there was full; for micro-batches from below.
  double waited_above = 0, waited_link = 0, waited_below = 0;
  double uplink = 0;  // bytes sent over those that the uplinks could have carried in that time, a mean
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
  StagedBound bound;
  double rows_per_second() const { return training_seconds > 0 ? static_cast<double>(samples) / training_seconds : 0; }
  std::uint64_t sim_seed = 0, trace_hash = 0;
  // Bytes on the links of all nodes: between stages by kind of frame, and all of them.
  std::uint64_t activation_bytes = 0, gradient_bytes = 0, control_bytes = 0, all_bytes = 0;
  gossip::PipelineFigures figures;  // of all nodes together, earlier lives included
  std::uint64_t link_resets = 0, restarts = 0, partitions = 0, strikes = 0;  // faults injected
  bool stopped_early = false;
};

// The sum of both, figure by figure.
void add(gossip::PipelineFigures& sum, const gossip::PipelineFigures& more);

// One sentence for people, without a full stop: which stage or link limits training, and who waits for it.
std::string limit_text(const StagedResult& result);

// One self-contained HTML page of the run `name`: the stages, and the loss against samples, virtual time and bytes.
std::string to_html(const StagedResult& result, const std::string& name);

// The object that `rumor sim --json` writes for a run in stages.
std::string to_json(const StagedResult& result);

// The same as the result of one run with the whole model, for comparison with others: all replicas of each stage are
// identical, bytes and idle time are those of a node.
SimResult as_whole(const StagedResult& result);

}  // namespace rumor::sim
