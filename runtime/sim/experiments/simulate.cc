#include "runtime/sim/experiments/simulate.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/sim/methods/methods.h"
#include "runtime/sim/stages/staged_run.h"

namespace rumor::sim {

namespace {

struct Way {
  std::string_view mode;
  Result<SimResult> (*run)(const MethodSetting&);
  bool in_rounds = false;
};
constexpr Way ways[] = {{"sync", run_sync, true}, {"downpour", run_downpour}, {"admm", run_admm, true}};

Result<SimResult> simulate_stages(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                                  const ClusterOptions& options, const Progress& progress) {
  auto run = StagedRun::create(config, std::move(data), options);
  if (!run) return run.error();
  auto result = (*run)->run(progress);
  if (!result) return result.error();
  SimResult whole = as_whole(*result);
  whole.run_name = config.name;
  whole.mode = "pipeline";
  return whole;
}

}  // namespace

bool learns_alike_everywhere(std::string_view mode) {
  const auto is = [&](const Way& way) { return way.mode == mode && way.in_rounds; };
  return std::any_of(std::begin(ways), std::end(ways), is);
}

Result<SimResult> simulate(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                           const ClusterOptions& options, const Progress& progress) {
  if (config.pipeline.stages > 1) return simulate_stages(config, std::move(data), options, progress);
  if (std::any_of(options.planned_faults.begin(), options.planned_faults.end(),
                  [](const PlannedFault& fault) { return fault.keeps_disk; }))
    return Error{Errc::usage, "keeps_disk = true is only for runs with stages (--stages): other nodes of a simulation "
                              "have no disks but in a storm; leave it out, or use --faults storm"};
  for (const Way& way : ways) {
    if (way.mode != config.mode) continue;
    auto absences = Absences::create(options, config.mode);
    if (!absences) return absences.error();
    auto learners = Learners::create(config, std::move(data), options);
    if (!learners) return learners.error();
    return way.run({config, options, *learners, *absences, progress});
  }
  auto cluster = Cluster::create(config, std::move(data), options);
  if (!cluster) return cluster.error();
  return (*cluster)->run(progress);
}

}  // namespace rumor::sim
