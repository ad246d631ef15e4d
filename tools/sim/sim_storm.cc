#include "tools/sim/sim_storm.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>

#include "runtime/base/text.h"
#include "runtime/sim/storm/staged_storm.h"
#include "tools/sim/sim_staged.h"

namespace rumor::tools {

namespace {

using RunStorm = std::function<sim::StormReport(const sim::StormRequest&)>;

Result<sim::StormRequest> storm_request(const SimCommand& command) {
  sim::StormRequest request;
  request.seed = command.sim_seed;
  request.nodes = command.nodes_given ? command.nodes : 0;
  for (const std::string& name : command.without) {
    const auto kind = sim::fault_named(name);
    if (!kind) return kind.error();
    request.allowed &= ~sim::fault_bit(*kind);
  }
  request.no_actions = command.actions == "none";
  std::istringstream numbers(request.no_actions ? "" : command.actions);
  for (std::string number; std::getline(numbers, number, ',');) {
    char* end = nullptr;
    request.only.push_back(static_cast<std::uint32_t>(std::strtoul(number.c_str(), &end, 10)));
    if (number.empty() || *end != '\0')
      return Error{Errc::usage, "--actions wants numbers with commas between them, or none"};
  }
  request.chaos = from_seconds(command.chaos_s);
  return request;
}

// In a process of its own: a failed check ends that one only.
bool fails_apart(const RunStorm& run, const sim::StormRequest& request) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) std::_Exit(2);
    std::_Exit(run(request).violation ? 1 : 0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  return !WIFEXITED(status) || WEXITSTATUS(status) == 1;
}

// The least that still fails, said at once.
Result<sim::StormRequest> shrunk(const RunStorm& run, const sim::StormRequest& request,
                                 const std::string& replay) {
  if (!fails_apart(run, request)) return Error{Errc::usage, "this does not fail: there is nothing to shrink"};
  ProgressLine line;
  std::size_t tried = 0;
  const sim::StormRequest least = sim::shrink(request, [&](const sim::StormRequest& smaller) {
    line.show(str("shrinking: ", ++tried, " runs"));
    return !interrupted() && fails_apart(run, smaller);
  });
  line.clear();
  std::printf("%s\n", sim::replay_line(least, replay).c_str());
  std::fflush(stdout);
  return least;
}

int print_report(std::FILE* to, const sim::StormReport& report) {
  std::fprintf(to,
               "%s\n%zu actions, %llu updates (%llu said to be lost), %.0f virtual seconds, trace %016llx\n",
               report.plan.c_str(), report.actions, static_cast<unsigned long long>(report.updates),
               static_cast<unsigned long long>(report.lost), report.virtual_seconds,
               static_cast<unsigned long long>(report.trace));
  if (!report.violation) {
    std::fprintf(to, "all replicas equal %.1f s after the faults ended\n", report.converged_seconds);
    return 0;
  }
  const sim::Violation& v = *report.violation;
  std::fprintf(to, "%s  # %s node %u stream %s seq %llu at %.3f s: %s\n", report.replay.c_str(),
               v.invariant.c_str(), v.host, v.key.stream.brief().c_str(),
               static_cast<unsigned long long>(v.key.seq), to_seconds(v.at.time_since_epoch()),
               v.text.c_str());
  return 1;
}

// For a shell.
std::string shell_quoted(const std::string& word) {
  if (word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=-") ==
      std::string::npos)
    return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string training_command(const SimCommand& command) {
  std::string text = "rumor sim " + shell_quoted(command.run.name);
  for (const std::string& set : command.run.overrides) text += " --set " + shell_quoted(set);
  if (command.network != "lan") text += " --network " + shell_quoted(command.network);
  if (command.step_ms != 20) text += str(" --step-ms ", command.step_ms);
  return text;
}

// One storm with training: the seed of the command, shrunk first if that is asked for. `fit` gives the request its
// times.
template <class Run, class Fit>
auto storm_of(const SimCommand& command, const Run& run, const Fit& fit, const sim::Progress& progress,
              ProgressLine& line) -> decltype(run(sim::StormRequest{}, std::string(), progress)) {
  auto request = storm_request(command);
  if (!request) return request.error();
  request->nodes = command.nodes;
  *request = fit(*request);
  const std::string replay = training_command(command);
  if (command.shrink) {
    request = shrunk(
        [&](const sim::StormRequest& one) {
          const auto all = run(one, replay, nullptr);
          return all ? all->report : sim::StormReport{};
        },
        *request, replay);
    if (!request) return request.error();
  }
  auto all = run(*request, replay, progress);
  line.clear();
  return all;
}

}  // namespace

int run_protocol_storm(const SimCommand& command) {
  auto request = storm_request(command);
  if (!request) return fail(request.error());
  const RunStorm run = [](const sim::StormRequest& one) { return sim::run_storm(one); };
  if (command.shrink) request = shrunk(run, *request, "rumor sim --protocol-only");
  return request ? print_report(stdout, run(*request)) : fail(request.error());
}

int run_training_storm(const SimCommand& command, const RunConfig& config,
                       const std::shared_ptr<const models::DataSet>& data, const sim::ClusterOptions& options,
                       const sim::Progress& progress, ProgressLine& line) {
  const auto run = [&](const sim::StormRequest& request, const std::string& replay, const sim::Progress& shown) {
    return sim::run_training_storm(config, data, options, request, replay, shown);
  };
  const auto fit = [&](sim::StormRequest request) {
    request.training = sim::expected_training(config, options);
    return request;
  };
  const auto start = std::chrono::steady_clock::now();
  auto all = storm_of(command, run, fit, progress, line);
  if (!all) return fail(all.error());
  if (all->report.violation) return print_report(stdout, all->report);
  all->result.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const int status = output_result(all->result, command);
  if (!all->result.stopped_early) print_report(command.json == "-" ? stderr : stdout, all->report);
  return status;
}

int run_staged_storm(const SimCommand& command, const RunConfig& config,
                     const std::shared_ptr<const models::DataSet>& data, const sim::ClusterOptions& options,
                     const sim::Progress& progress, ProgressLine& line) {
  const auto run = [&](const sim::StormRequest& request, const std::string& replay, const sim::Progress& shown) {
    return sim::run_staged_storm(config, data, options, request, replay, shown);
  };
  const auto fit = [&](const sim::StormRequest& request) {
    return sim::fitted_to_stages(request, config, options);
  };
  const auto start = std::chrono::steady_clock::now();
  auto all = storm_of(command, run, fit, progress, line);
  if (!all) return fail(all.error());
  if (all->report.violation) return print_report(stdout, all->report);
  if (all->result.stopped_early)
    return fail({Errc::io, "stopped before the end, with stages that are not equally far"});
  all->result.wall_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const int status = output_staged(all->result, config, command);
  print_report(command.json == "-" ? stderr : stdout, all->report);
  return status;
}

}  // namespace rumor::tools
