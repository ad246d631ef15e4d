// rumor sim --protocol-only: the protocol without training: one swarm seed (sim_storm.cc), or spreading at scale.
#include <chrono>
#include <cstdio>

#include "runtime/base/text.h"
#include "runtime/sim/world/spreading.h"
#include "tools/sim/sim_output.h"
#include "tools/sim/sim_storm.h"
#include "tools/words/command.h"

namespace rumor::tools {

namespace {

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
  print("links", fixed(r.links_mean, 2), str("a peer at the end; at least ", fixed(r.links_least, 0), "; made while ",
                                             "measuring: ", r.connections));
  print("control", fixed(r.control_share * 100, 2) + " %", "of all bytes sent");
  if (r.options.outage > Duration{0}) {
    print("in the outage", fixed(r.outage_goodput * 100, 1) + " %", "of what was made meanwhile arrived meanwhile");
    print("recovered after", fixed(r.recovered_seconds, 0) + " s", "95 % of what is made arrives again");
  }
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
  options.undiallable = command.undiallable;
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
  if (command.faults == "storm") return run_protocol_storm(command);
  if (command.faults != "none") return fail({Errc::usage, "--protocol-only takes --faults none or storm"});
  return run_spreading_profile(command, network);
}

}  // namespace rumor::tools
