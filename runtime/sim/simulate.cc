#include "runtime/sim/simulate.h"

#include "runtime/sim/methods/methods.h"

namespace rumor::sim {

namespace {

struct Way {
  std::string_view mode;
  Result<SimResult> (*run)(const RunConfig&, std::shared_ptr<const models::DataSet>, const ClusterOptions&,
                           const Progress&);
};
constexpr Way ways[] = {{"sync", run_sync}, {"downpour", run_downpour}, {"admm", run_admm}, {"average", run_average},
                        {"codistill", run_codistill}};

}  // namespace

Result<SimResult> simulate(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                           const ClusterOptions& options, const Progress& progress) {
  for (const Way& way : ways)
    if (way.mode == config.mode) return way.run(config, std::move(data), options, progress);
  auto cluster = Cluster::create(config, std::move(data), options);
  if (!cluster) return cluster.error();
  return (*cluster)->run(progress);
}

}  // namespace rumor::sim
