// rumor compare: ways to train, side by side on one run file, in virtual time. What has been tried is kept, so that a
// comparison that was interrupted goes on where it was.
#include "runtime/sim/compare.h"

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "runtime/base/bytes.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/sim/simulate.h"
#include "tools/command.h"
#include "tools/sim_output.h"

namespace rumor::tools {

namespace {

// Runs trials, or finds what an earlier run has kept of them.
class Trials {
 public:
  Trials(const CompareCommand& command, sim::ClusterOptions options, std::string setting,
         std::shared_ptr<const models::DataSet> data, std::size_t count)
      : command_(command), options_(std::move(options)), setting_(std::move(setting)), data_(std::move(data)),
        count_(count) {}

  Result<sim::Trial> run(const sim::Method& method, double rate, std::uint64_t seed) {
    ++number_;
    const std::string path = path_of(method, rate, seed);
    if (auto kept = path.empty() ? std::nullopt : kept_at(path)) return *kept;
    RunConfig config = method.config;
    config.rate = rate;
    sim::ClusterOptions options = options_;
    options.nodes = method.nodes;
    options.seed = seed;
    const sim::Progress progress = [&](const sim::CurvePoint& point, double fraction) {
      line_.show(str(number_, " of ", count_, "  ", method.label, " rate ", fixed(rate, 5), " seed ", seed, "  ",
                     fixed(fraction * 100, 0), " %  loss ", fixed(point.loss, 3)));
      return !interrupted();
    };
    auto result = sim::simulate(config, data_, options, progress);
    line_.clear();
    if (interrupted()) return Error{Errc::io, "interrupted"};
    if (!result && result.error().code != Errc::not_finite) return result.error();
    sim::Trial trial;
    if (result) {
      trial = sim::trial_of(*result, rate);
    } else {  // a rate too high ends a run; others may do
      std::fprintf(stderr, "rumor: %s, rate %s: %s\n", method.label.c_str(), fixed(rate, 5).c_str(),
                   result.error().text.c_str());
      trial.rate = rate;
      trial.seed = seed;
      trial.loss = std::nan("");
    }
    if (!path.empty())
      if (auto written = write_file(path, sim::to_json(trial)); !written) return written.error();
    return trial;
  }

 private:
  // By all that a trial follows from.
  std::string path_of(const sim::Method& method, double rate, std::uint64_t seed) const {
    if (!command_.keep) return {};
    const std::string what =
        str(setting_, "\n", method.label, "\nnodes ", method.nodes, "\n", fixed(rate, 12), "\n", seed);
    const BytesView bytes(reinterpret_cast<const std::uint8_t*>(what.data()), what.size());
    return *command_.keep + "/trial-" + sha256(bytes).hex().substr(0, 16) + ".json";
  }

  static std::optional<sim::Trial> kept_at(const std::string& path) {
    const auto text = read_text_file(path);
    if (!text) return std::nullopt;
    auto trial = sim::trial_from_json(*text);
    if (trial) return *trial;
    std::fprintf(stderr, "rumor: %s is damaged (%s); that trial is made again\n", path.c_str(),
                 trial.error().text.c_str());
    return std::nullopt;
  }

  const CompareCommand& command_;
  sim::ClusterOptions options_;
  std::string setting_;
  std::shared_ptr<const models::DataSet> data_;
  std::size_t count_, number_ = 0;
  ProgressLine line_;
};

// Everything but method, nodes, rate and seed that decides how a trial ends. The files of data and the program are
// taken to be the same.
std::string setting_of(const CompareCommand& command, const std::string& run_text, const sim::ClusterOptions& options) {
  std::string text = str(run_text, "\nstep ", options.step.count());
  for (const double factor : options.step_factors) text += str(" ", fixed(factor, 6));
  const sim::NetworkModel& n = options.network;
  text += str("\nnetwork ", n.latency_min.count(), " ", n.latency_max.count(), " ", n.jitter.count(), " ",
              n.up_bytes_per_second, " ", n.down_bytes_per_second);
  for (const std::string& set : command.run.overrides) text += "\n" + set;
  if (options.start) text += "\nweights " + options.start->hash.hex();
  return text;
}

}  // namespace

int run_compare_command(const CompareCommand& command) {
  auto config = load_run(command.run);
  if (!config) return fail(config.error());
  sim::ClusterOptions options;
  options.step = from_seconds(command.step_ms * 1e-3);
  options.step_factors = command.step_factors;
  auto network = load_network(command.network);
  if (!network) return fail(network.error());
  options.network = std::move(network).value();
  std::vector<sim::Method> methods;
  for (const std::string& text : command.methods) {
    auto method = sim::parse_method(text, *config, command.nodes);
    if (!method) return fail(method.error());
    if (const std::string warning = method->config.warning(); !warning.empty())
      std::fprintf(stderr, "warning: %s: %s\n", method->label.c_str(), warning.c_str());
    methods.push_back(std::move(method).value());
  }
  auto data = models::load_data(config->data, config->model.context);
  if (!data) return fail(data.error());
  auto start = models::load_start_weights(config->weights, config->model, **data, config->grid_bits);
  if (!start) return fail(start.error());
  options.start = std::move(start).value();
  auto run_text = run_file_text(command.run);
  if (!run_text) return fail(run_text.error());
  if (command.keep) {
    std::error_code error;
    std::filesystem::create_directories(*command.keep, error);
    if (error) return fail({Errc::io, str(*command.keep, ": ", error.message())});
  }
  watch_for_signals();
  const std::string setting = setting_of(command, *run_text, options);
  Trials trials(command, options, setting, *data, methods.size() * (command.rates.size() + command.seeds - 1));
  auto compared = sim::compare(methods, command.rates, command.sim_seed, command.seeds,
                               [&](const sim::Method& method, double rate, std::uint64_t seed) {
                                 return trials.run(method, rate, seed);
                               });
  if (interrupted()) {
    std::fprintf(stderr, "rumor: interrupted%s\n",
                 command.keep ? "; the same command goes on from here" : "; with --keep DIR one can go on later");
    return 0;
  }
  if (!compared) return fail(compared.error());
  compared->network = options.network.name;
  if (command.json)
    if (auto written = write_file(*command.json, sim::to_json(*compared)); !written) return fail(written.error());
  if (command.report)
    if (auto written = write_report(*command.report, sim::to_html(*compared)); !written) return fail(written.error());
  std::fputs(sim::to_table(*compared).c_str(), command.json == "-" ? stderr : stdout);
  return 0;
}

}  // namespace rumor::tools
