#include "runtime/sim/stages/staged_result.h"

#include <algorithm>

namespace rumor::sim {

void add(gossip::PipelineFigures& sum, const gossip::PipelineFigures& more) {
  using Figures = gossip::PipelineFigures;
  for (const auto figure : {&Figures::steps, &Figures::counted, &Figures::dropped, &Figures::late, &Figures::lost,
                            &Figures::refused, &Figures::repeats, &Figures::sums_again})
    sum.*figure += more.*figure;
}

SimResult as_whole(const StagedResult& result) {
  SimResult whole;
  whole.sim_seed = result.sim_seed;
  whole.trace_hash = result.trace_hash;
  whole.samples = result.samples;
  whole.virtual_seconds = result.virtual_seconds;
  whole.loss = result.evaluation.loss;
  whole.accuracy = result.evaluation.accuracy;
  whole.curve = result.curve;
  whole.identical = true;
  double busy = 0;
  for (const StageResult& stage : result.stages) {
    whole.nodes += stage.run.nodes;
    whole.params += stage.run.params;
    whole.identical = whole.identical && stage.run.identical;
    busy += stage.utilisation * static_cast<double>(stage.run.nodes);
  }
  const double nodes = static_cast<double>(whole.nodes);
  whole.sent_bytes_per_node = static_cast<double>(result.all_bytes) / nodes;
  whole.idle_fraction = std::max(0.0, 1 - busy / nodes);
  return whole;
}

}  // namespace rumor::sim
