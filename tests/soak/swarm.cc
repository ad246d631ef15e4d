#include <cstdio>
#include <cstdlib>
#include "runtime/sim/swarm.h"
using namespace rumor::sim;
#include "gossip/wire.h"
#include "/tmp/spy.h"
int main(int argc, char** argv) {
  std::uint64_t a = std::strtoull(argv[1], nullptr, 10), b = std::strtoull(argv[2], nullptr, 10);
  bool v = argc > 3;
  for (; a <= b; ++a) {
    SwarmRequest r; r.seed = a;
    if (v) std::fprintf(stderr, "seed %lu\n", a);
    SwarmReport p = v ? run_swarm(r,[&](ProtocolWorld& w){return std::make_unique<Spy>(w,atof(argv[3]),atof(argv[4]),atoi(argv[5]));}) : run_swarm(r);
    std::printf("%lu %s %s n=%zu a=%zu u=%lu lost=%lu ev=%lu t=%.0f conv=%.1f copies=%.3f p99=%.2f %016lx", a, p.violation ? p.violation->invariant.c_str() : "ok",
      p.violation ? p.violation->text.c_str() : "", p.nodes, p.actions, p.updates, p.lost, p.events, p.virtual_seconds, p.converged_seconds, p.copies, p.delay_p99, p.trace);
    if (p.violation) std::printf(" host %u at %.3f", p.violation->host, rumor::to_seconds(p.violation->at.time_since_epoch()));
    if (p.violation) { std::printf(" %s",p.plan.c_str()); }
    std::printf("\n"); std::fflush(stdout);
  }
}
