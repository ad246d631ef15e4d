// rumor sim: a cluster in virtual time, or the dense baseline.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "runtime/base/text.h"
#include "runtime/sim/experiments/simulate.h"
#include "tools/sim/sim_output.h"
#include "tools/sim/sim_staged.h"
#include "tools/sim/sim_storm.h"
#include "tools/words/command.h"

namespace rumor::tools {

namespace {

Result<sim::ClusterOptions> cluster_options(const SimCommand& command) {
  sim::ClusterOptions options;
  options.nodes = command.nodes;
  options.seed = command.sim_seed;
  options.step = from_seconds(command.step_ms * 1e-3);
  options.step_factors = command.step_factors;
  auto network = load_network(command.network);
  if (!network) return network.error();
  options.network = std::move(network).value();
  if (command.faults != "none" && command.faults != "light" && command.faults != "storm") {
    if (!std::filesystem::is_regular_file(command.faults))
      return Error{Errc::usage, "--faults " + command.faults +
                                    " is neither none, light or storm nor a file; FILE.toml lists faults as "
                                    "[[fault]] kind = \"kill\", at_s = 20, lasts_s = 5, nodes = [1]"};
    const auto text = read_text_file(command.faults);
    if (!text) return text.error();
    auto plan = sim::parse_fault_plan(*text, command.faults, command.nodes);
    if (!plan) return plan.error();
    options.planned_faults = std::move(plan).value();
  }
  options.light_faults = command.faults == "light";
  return options;
}

}  // namespace

int run_sim_command(const SimCommand& asked) {
  SimCommand command = asked;
  if (command.faults == "swarm") {
    std::fprintf(stderr, "--faults swarm is now called --faults storm; the old word still works\n");
    command.faults = "storm";
  }
  // First, since other keys of [pipeline] have to fit it.
  std::vector<std::string>& keys = command.run.overrides;
  if (command.stages > 0) keys.insert(keys.begin(), str("pipeline.stages=", command.stages));
  if (command.protocol_only) {
    if (command.stages > 1)
      return fail({Errc::usage, "--protocol-only has no model that could be cut; leave --stages out"});
    const auto network = load_network(command.network);
    return network ? run_protocol_command(command, *network) : fail(network.error());
  }
  auto config = load_run(command.run);
  if (!config) return fail(config.error());
  if (const std::string warning = config->warning(); !warning.empty())
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  if (config->hogwild > 1)
    std::fprintf(stderr,
                 "optimizer.hogwild = %u: a simulation has to repeat itself, so one worker takes the %u mini-batches "
                 "of each step in turn; --daemons lets them race\n",
                 config->hogwild, config->batches());
  auto options = cluster_options(command);
  if (!options) return fail(options.error());
  auto data = models::load_data(config->data, config->model.context);
  if (!data) return fail(data.error());
  auto start_weights = models::load_start_weights(config->weights, config->model, **data, config->grid_bits);
  if (!start_weights) return fail(start_weights.error());
  options->start = std::move(start_weights).value();
  watch_for_signals();
  ProgressLine line;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const sim::Progress progress = [&](const sim::CurvePoint& point, double fraction) {
    std::string text =
        str(fixed(fraction * 100, 0), " %  ", point.samples, " samples  loss ", fixed(point.loss, 3));
    if (point.accuracy) text += str("  accuracy ", fixed(*point.accuracy * 100, 1), " %");
    line.show(
        str(text, "  sent ", byte_text(point.sent_bytes_per_node), " a peer  ", fixed(elapsed(), 0), " s"));
    return !interrupted();
  };
  if (command.faults == "storm" && !command.step_factors.empty())
    return fail({Errc::usage, "--faults storm draws the speed of each peer itself: leave --step-factors out"});
  if (config->pipeline.stages > 1)
    return run_staged_command(command, *config, *data, *options, progress, line);
  if (command.faults == "storm" && config->mode != "broadcast")
    return fail({Errc::usage, str("--faults storm compares a replica that all have in common, and exchange.mode = \"",
                                  config->mode, "\" has none; a file with kind = \"kill\" makes peers come and go")});
  if (command.faults == "storm")
    return run_training_storm(command, *config, *data, *options, progress, line);
  auto result = sim::simulate(*config, *data, *options, progress);
  line.clear();
  if (!result) return fail(result.error());
  result->wall_seconds = elapsed();
  return output_result(*result, command);
}

}  // namespace rumor::tools
