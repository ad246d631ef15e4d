// rumor sim --protocol-only: the protocol without training: one swarm seed, shrunk if asked for, or spreading
// at scale.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "runtime/base/text.h"
#include "runtime/sim/spreading.h"
#include "runtime/sim/swarm.h"
#include "tools/command.h"
#include "tools/sim_output.h"

namespace rumor::tools {

namespace {

Result<sim::SwarmRequest> swarm_request(const SimCommand& command) {
  sim::SwarmRequest request;
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
bool fails_apart(const sim::SwarmRequest& request) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) std::_Exit(2);
    std::_Exit(sim::run_swarm(request).violation ? 1 : 0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  return !WIFEXITED(status) || WEXITSTATUS(status) == 1;
}

int run_swarm_seed(const SimCommand& command) {
  auto request = swarm_request(command);
  if (!request) return fail(request.error());
  if (command.shrink) {
    if (!fails_apart(*request)) return fail({Errc::usage, "this does not fail: there is nothing to shrink"});
    ProgressLine line;
    std::size_t tried = 0;
    *request = sim::shrink(*request, [&](const sim::SwarmRequest& smaller) {
      line.show(str("shrinking: ", ++tried, " runs"));
      return !interrupted() && fails_apart(smaller);
    });
    line.clear();
    std::printf("%s\n", sim::replay_line(*request).c_str());
    std::fflush(stdout);
  }
  const sim::SwarmReport report = sim::run_swarm(*request);
  std::printf("%s\n%zu actions, %llu updates (%llu said to be lost), %.0f virtual seconds, trace %016llx\n",
              report.plan.c_str(), report.actions, static_cast<unsigned long long>(report.updates),
              static_cast<unsigned long long>(report.lost), report.virtual_seconds,
              static_cast<unsigned long long>(report.trace));
  if (!report.violation) {
    std::printf("all replicas equal %.1f s after the faults ended\n", report.converged_seconds);
    return 0;
  }
  const sim::Violation& v = *report.violation;
  std::printf("%s  # %s node %u stream %s seq %llu at %.3f s: %s\n", report.replay.c_str(),
              v.invariant.c_str(), v.host, v.key.stream.brief().c_str(),
              static_cast<unsigned long long>(v.key.seq), to_seconds(v.at.time_since_epoch()),
              v.text.c_str());
  return 1;
}

void print(const char* name, const std::string& value, const std::string& meaning) {
  std::printf("  %-20s %14s   %s\n", name, value.c_str(), meaning.c_str());
}

void print_spreading(const sim::SpreadingResult& r, double wall) {
  std::printf(
      "\n%zu peers, %zu bytes each %.1f s from everyone: %.0f %% of every link, network %s, seed %llu\n\n",
      r.options.nodes, r.options.payload_bytes, r.interval_seconds, r.options.load * 100,
      r.options.network.name.c_str(), static_cast<unsigned long long>(r.options.seed));
  print("deliveries", str(r.deliveries), str(r.updates, " updates; ", r.missing, " missing at the end"));
  print("copies per delivery", fixed(r.copies, 4), "1 is ideal");
  print("delivery", fixed(r.p50, 2) + " s", str("median; 99 % within ", fixed(r.p99, 2), " s"));
  print("last node", fixed(r.last_p99, 2) + " s", "99 % of updates are everywhere within");
  print("slowest node", fixed(r.worst_node_median, 2) + " s", "its median delivery");
  print("hops", fixed(r.hops_mean, 2), str("mean; at most ", fixed(r.hops_max, 0)));
  print("busiest uplink", fixed(r.busiest_uplink, 2), "times the mean");
  print("control", fixed(r.control_share * 100, 2) + " %", "of all bytes sent");
  if (r.options.outage > Duration{0})
    print("recovered after", fixed(r.recovered_seconds, 0) + " s", "95 % of what is made arrives again");
  print("virtual time", fixed(r.virtual_seconds, 0) + " s", str("computed in ", fixed(wall, 1), " s"));
  std::printf("\n");
}

int run_spreading_profile(const SimCommand& command, const sim::NetworkModel& network) {
  sim::SpreadingOptions options;
  options.nodes = command.nodes_given ? command.nodes : 200;
  options.payload_bytes = command.payload_bytes;
  options.load = command.load;
  options.seed = command.sim_seed;
  options.network = network;
  options.rounds = command.rounds;
  options.outage = from_seconds(command.outage_s);
  ProgressLine line;
  const auto start = std::chrono::steady_clock::now();
  const sim::SpreadingResult result = sim::run_spreading(options, [&](double done) {
    line.show(str(fixed(done * 100, 0), " %"));
    return !interrupted();
  });
  line.clear();
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (command.json)
    if (auto written = write_file(*command.json, sim::to_json(result, wall)); !written)
      return fail(written.error());
  if (command.json != "-") print_spreading(result, wall);
  return 0;
}

}  // namespace

int run_protocol_command(const SimCommand& command, const sim::NetworkModel& network) {
  watch_for_signals();
  if (command.faults == "swarm") return run_swarm_seed(command);
  if (command.faults != "none") return fail({Errc::usage, "--protocol-only takes --faults none or swarm"});
  return run_spreading_profile(command, network);
}

}  // namespace rumor::tools
