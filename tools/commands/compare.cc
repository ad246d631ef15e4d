// rumor compare: compares training methods on one run file, in virtual time. Finished trials are kept, so that an
// interrupted comparison resumes.
#include "runtime/sim/experiments/compare.h"

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "runtime/base/bytes.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/sim/experiments/frontier.h"
#include "runtime/sim/experiments/simulate.h"
#include "tools/sim/sim_output.h"
#include "tools/words/command.h"

namespace rumor::tools {

namespace {

// Everything but method, nodes, rate and seed that decides how a trial ends. The files of data and the program are
// taken to be the same.
struct Setting {
  std::string what;   // is learned: run file, overrides, first weights, looks at it
  std::string where;  // machines and links
};

Setting setting_of(const CompareCommand& command, const std::string& run_text, const sim::ClusterOptions& options) {
  Setting setting{run_text, str("step ", options.step.count())};
  setting.what += str("\npoints ", options.curve_points);
  for (const std::string& set : command.run.overrides) setting.what += "\n" + set;
  if (options.start) setting.what += "\nweights " + options.start->hash.hex();
  for (const double factor : options.step_factors) setting.where += str(" ", fixed(factor, 6));
  const sim::NetworkModel& n = options.network;
  setting.where += str("\nnetwork ", n.latency_min.count(), " ", n.latency_max.count(), " ", n.jitter.count(), " ",
                       n.up_bytes_per_second, " ", n.down_bytes_per_second);
  return setting;
}

// Runs trials, or reads those that an earlier run has kept. A file named learned-... has the results of a method that
// learns the same on every network (sim::learns_alike_everywhere); on another network only its cost is computed.
class Trials {
 public:
  Trials(const CompareCommand& command, sim::ClusterOptions options, Setting setting,
         std::shared_ptr<const models::DataSet> data, std::size_t count)
      : command_(command), options_(std::move(options)), setting_(std::move(setting)), data_(std::move(data)),
        count_(count) {}

  Result<sim::Trial> run(const sim::Method& method, double rate, std::uint64_t seed) {
    ++number_;
    if (!command_.keep) return simulate(method, rate, seed, nullptr);
    const std::string what =
        str(setting_.what, "\n", method.label, "\nnodes ", method.nodes, "\n", fixed(rate, 12), "\n", seed);
    const std::string path = path_of("trial", str(what, "\n", setting_.where)), learned = path_of("learned", what);
    if (auto kept = kept_at(path)) return *kept;
    const bool alike = sim::learns_alike_everywhere(method.config.mode);
    std::optional<sim::Trial> known = alike ? kept_at(learned) : std::nullopt;
    auto trial = simulate(method, rate, seed, known ? &*known : nullptr);
    if (!trial && known && !interrupted()) {  // another program's, that looked at other times
      known.reset();
      trial = simulate(method, rate, seed, nullptr);
    }
    if (!trial) return trial;
    const std::string text = sim::to_json(*trial);
    if (auto written = write_file(path, text); !written) return written.error();
    if (alike && !known)
      if (auto written = write_file(learned, text); !written) return written.error();
    return trial;
  }

 private:
  Result<sim::Trial> simulate(const sim::Method& method, double rate, std::uint64_t seed, const sim::Trial* known) {
    if (known != nullptr && !std::isfinite(known->loss)) return *known;  // it diverges anywhere
    RunConfig config = method.config;
    config.rate = rate;
    sim::ClusterOptions options = options_;
    options.nodes = method.nodes;
    options.seed = seed;
    if (known != nullptr) options.learned = std::make_shared<const std::vector<sim::CurvePoint>>(known->curve);
    const sim::Progress progress = [&](const sim::CurvePoint& point, double fraction) {
      line_.show(str(number_, " of ", count_, "  ", fixed(fraction * 100, 0), " %  loss ", fixed(point.loss, 3), "  ",
                     method.label, " rate ", fixed(rate, 5), " seed ", seed));
      return !interrupted();
    };
    auto result = sim::simulate(config, data_, options, progress);
    line_.clear();
    if (interrupted()) return Error{Errc::io, "interrupted"};
    if (!result && result.error().code != Errc::not_finite) return result.error();
    if (result) return sim::trial_of(*result, rate);
    // A rate too high ends a run; others may do.
    std::fprintf(stderr, "rumor: %s, rate %s: %s\n", method.label.c_str(), fixed(rate, 5).c_str(),
                 result.error().text.c_str());
    sim::Trial diverged;
    diverged.rate = rate;
    diverged.seed = seed;
    diverged.loss = std::nan("");
    return diverged;
  }

  // By all that its content follows from.
  std::string path_of(const char* kind, const std::string& from) const {
    const BytesView bytes(reinterpret_cast<const std::uint8_t*>(from.data()), from.size());
    return str(*command_.keep, "/", kind, "-", sha256(bytes).hex().substr(0, 16), ".json");
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
  Setting setting_;
  std::shared_ptr<const models::DataSet> data_;
  std::size_t count_, number_ = 0;
  ProgressLine line_;
};

// The methods to run: those asked for or, for a frontier, each of them at its settings.
struct Asked {
  std::vector<sim::Method> methods;
  std::optional<sim::FrontierPlan> plan;
};

Result<Asked> asked_of(const CompareCommand& command, const RunConfig& config) {
  std::vector<std::string> texts = command.methods;
  if (texts.empty() && command.frontier) texts = sim::frontier_methods();
  if (texts.empty()) texts = {"broadcast", "sync", "alone"};
  Asked asked;
  for (const std::string& text : texts) {
    auto method = sim::parse_method(text, config, command.nodes);
    if (!method) return method.error();
    if (const std::string warning = method->config.warning(); !warning.empty())
      std::fprintf(stderr, "warning: %s: %s\n", text.c_str(), warning.c_str());
    asked.methods.push_back(std::move(method).value());
  }
  if (!command.frontier) return asked;
  auto plan = sim::plan_frontier(texts, config, command.nodes, command.budgets);
  if (!plan) return plan.error();
  asked.methods = plan->runs();
  asked.plan = std::move(plan).value();
  return asked;
}

// Run file, overrides and their data, as all methods see them. Errors: of the files.
Result<std::shared_ptr<const models::DataSet>> load_common(const RunConfig& config, sim::ClusterOptions& options) {
  auto data = models::load_data(config.data, config.model.context);
  if (!data) return data.error();
  auto start = models::load_start_weights(config.weights, config.model, **data, config.grid_bits);
  if (!start) return start.error();
  options.start = std::move(start).value();
  return data;
}

// A run of many minutes should not find out at its end that it cannot write.
Result<void> make_directories(const CompareCommand& command) {
  const auto page = [](const std::string& directory) {
    return (std::filesystem::path(directory) / "index.html").lexically_normal();
  };
  if (command.frontier && command.report && page(*command.frontier) == page(*command.report))
    return Error{Errc::usage, str("--frontier and --report both write ", page(*command.report).string(),
                                  "; give them different directories")};
  for (const auto& directory : {command.keep, command.frontier}) {
    if (!directory) continue;
    std::error_code error;
    std::filesystem::create_directories(*directory, error);
    if (error) return Error{Errc::io, str(*directory, ": ", error.message())};
  }
  return {};
}

Result<void> write_json_and_report(const CompareCommand& command, const std::string& json,
                                   const sim::Comparison& compared) {
  if (command.json)
    if (auto written = write_file(*command.json, json); !written) return written;
  return command.report ? write_report(*command.report, sim::to_html(compared)) : Result<void>();
}

Result<void> write_comparison(const CompareCommand& command, const sim::Comparison& compared) {
  if (auto written = write_json_and_report(command, sim::to_json(compared), compared); !written) return written;
  std::fputs(sim::to_table(compared).c_str(), command.json == "-" ? stderr : stdout);
  return {};
}

Result<void> write_frontier(const CompareCommand& command, const sim::Frontier& frontier) {
  const std::string json = sim::to_json(frontier);
  if (auto written = write_json_and_report(command, json, frontier.compared); !written) return written;
  if (auto written = write_report(*command.frontier, sim::to_html(frontier)); !written) return written;
  std::fprintf(command.json == "-" ? stderr : stdout, "%s\n  page: %s/index.html\n\n", sim::to_table(frontier).c_str(),
               command.frontier->c_str());
  return {};
}

}  // namespace

int run_compare_command(const CompareCommand& command) {
  auto config = load_run(command.run);
  if (!config) return fail(config.error());
  sim::ClusterOptions options;
  options.step = from_seconds(command.step_ms * 1e-3);
  options.step_factors = command.step_factors;
  options.curve_points = command.points;
  auto network = load_network(command.network);
  if (!network) return fail(network.error());
  options.network = std::move(network).value();
  auto asked = asked_of(command, *config);
  if (!asked) return fail(asked.error());
  auto data = load_common(*config, options);
  if (!data) return fail(data.error());
  auto run_text = run_file_text(command.run);
  if (!run_text) return fail(run_text.error());
  if (auto made = make_directories(command); !made) return fail(made.error());
  watch_for_signals();
  const std::size_t count = asked->methods.size() * (command.rates.size() + command.seeds - 1);
  if (asked->plan)
    std::fprintf(stderr, "%zu settings of %zu methods, %zu runs\n", asked->methods.size(), asked->plan->methods.size(),
                 count);
  Trials trials(command, options, setting_of(command, *run_text, options), *data, count);
  auto compared = sim::compare(asked->methods, command.rates, command.sim_seed, command.seeds,
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
  const auto written = asked->plan ? write_frontier(command, sim::frontier_of(*asked->plan, std::move(*compared)))
                                   : write_comparison(command, *compared);
  return written ? 0 : fail(written.error());
}

}  // namespace rumor::tools
