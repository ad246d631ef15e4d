#include "tools/sim/sim_staged.h"

#include <chrono>
#include <cstdio>

#include "runtime/base/text.h"
#include "runtime/sim/stages/staged_run.h"
#include "tools/sim/sim_storm.h"

namespace rumor::tools {

namespace {

// The bytes of each border, and how many micro-batches the network wants in flight there.
void print_borders(std::FILE* to, const sim::StagedResult& r) {
  std::fprintf(to, "\n  %-7s %13s %13s %12s %12s %10s\n", "border", "up", "down", "link takes", "computing",
               "in flight");
  for (std::size_t i = 0; i + 1 < r.bound.stages.size(); ++i) {
    const sim::StagedBound::Stage& above = r.bound.stages[i + 1];
    std::fprintf(to, "  %-7s %13s %13s %9s ms %9s ms %10s\n", str(i + 1, " to ", i + 2).c_str(),
                 byte_text(static_cast<double>(r.bound.stages[i].costs.up_bytes)).c_str(),
                 byte_text(static_cast<double>(above.costs.down_bytes)).c_str(),
                 fixed(above.link_seconds * 1e3, 2).c_str(), fixed(above.compute_seconds * 1e3, 2).c_str(),
                 fixed(above.in_flight(), 1).c_str());
  }
  std::fputs("  of a micro-batch, at a peer above the border. In flight: 1 + (round trip + link) / computing\n", to);
}

void print_staged(std::FILE* to, const RunConfig& config, const sim::StagedResult& r) {
  std::fprintf(to, "\n%s in %zu stages\n\n", config.name.c_str(), r.stages.size());
  std::fprintf(to, "  %-6s %-9s %6s %11s %9s %12s %9s  %s\n", "stage", "units", "peers", "parameters",
               "samples", "utilisation", "replicas", "sent by each peer");
  for (std::size_t i = 0; i < r.stages.size(); ++i) {
    const sim::StageResult& stage = r.stages[i];
    std::fprintf(to, "  %-6zu %-9s %6zu %11llu %9llu %10s %% %9s  %s\n", i + 1,
                 str(stage.units.begin + 1, " to ", stage.units.end).c_str(), stage.run.nodes,
                 static_cast<unsigned long long>(stage.run.params),
                 static_cast<unsigned long long>(stage.run.samples),
                 fixed(stage.utilisation * 100, 1).c_str(), stage.run.identical ? "equal" : "NOT EQUAL",
                 byte_text(stage.run.sent_bytes_per_node).c_str());
  }
  print_borders(to, r);
  std::fprintf(to, "\n  test loss       %s, of the stages joined together\n",
               fixed(r.evaluation.loss, 4).c_str());
  if (r.evaluation.accuracy)
    std::fprintf(to, "  test accuracy   %s %%\n", fixed(*r.evaluation.accuracy * 100, 2).c_str());
  std::fprintf(to, "  between stages  %s of activations with labels, %s of gradients, %s of control\n",
               byte_text(static_cast<double>(r.activation_bytes)).c_str(),
               byte_text(static_cast<double>(r.gradient_bytes)).c_str(),
               byte_text(static_cast<double>(r.control_bytes)).c_str());
  std::fprintf(to, "  rows a second   %s; processors and links alone allow %s, by the %s of stage %zu\n",
               fixed(r.rows_per_second(), 1).c_str(), fixed(r.bound.rows_per_second, 1).c_str(),
               r.bound.stages[r.bound.slowest].is_link() ? "links" : "processors", r.bound.slowest + 1);
  std::fprintf(to, "  limit           %s\n", limit_text(r).c_str());
  if (r.link_resets + r.restarts + r.partitions + r.strikes > 0)
    std::fprintf(to,
                 "  faults          %llu restarts, %llu links reset, %llu partitions; %llu micro-batches sent again\n",
                 static_cast<unsigned long long>(r.restarts), static_cast<unsigned long long>(r.link_resets),
                 static_cast<unsigned long long>(r.partitions),
                 static_cast<unsigned long long>(r.figures.lost + r.figures.late + r.figures.refused));
  std::fprintf(to, "  virtual time    %s s, computed in %s s\n\n", fixed(r.virtual_seconds, 1).c_str(),
               fixed(r.wall_seconds, 1).c_str());
}

}  // namespace

int output_staged(const sim::StagedResult& result, const RunConfig& config, const SimCommand& command) {
  if (command.json)
    if (auto written = write_file(*command.json, sim::to_json(result)); !written) return fail(written.error());
  if (command.report)
    if (auto written = write_report(*command.report, sim::to_html(result, config.name)); !written)
      return fail(written.error());
  std::FILE* to = command.json == "-" ? stderr : stdout;
  print_staged(to, config, result);
  if (command.report) std::fprintf(to, "  report: %s/index.html\n\n", command.report->c_str());
  return 0;
}

int run_staged_command(const SimCommand& command, const RunConfig& config,
                       const std::shared_ptr<const models::DataSet>& data, const sim::ClusterOptions& options,
                       const sim::Progress& progress, ProgressLine& line) {
  if (command.faults == "storm") return run_staged_storm(command, config, data, options, progress, line);
  const auto began = std::chrono::steady_clock::now();
  auto run = sim::StagedRun::create(config, data, options);
  if (!run) return fail(run.error());
  auto result = (*run)->run(progress);
  line.clear();
  if (!result) return fail(result.error());
  if (result->stopped_early)
    return fail({Errc::io, "stopped before the end, with stages that are not equally far"});
  result->wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return output_staged(*result, config, command);
}

}  // namespace rumor::tools
