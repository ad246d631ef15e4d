// AuditedWorld: a world in which every node has an auditor whose findings the test decides.
#pragma once

#include <utility>
#include <vector>

#include "tests/unit/gossip/audits/fake_auditor.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

struct AuditedWorld {
  explicit AuditedWorld(std::size_t count, std::uint64_t seed = 1) : auditors(count), world(count, seed) {
    for (std::size_t i = 0; i < count; ++i) world.auditors[i] = &auditors[i];
  }
  void start() {
    world.start_all();
    world.run_for(2s);
  }
  // Has the auditor of node i answer all that it was asked.
  void answer(std::size_t i, Checked verdict) {
    for (const Revocation& proof : std::exchange(auditors[i].checks, {}))
      world.with(i, [&](Protocol& node, TimePoint now, Outbox& out) { node.checked(proof, verdict, now, out); });
  }
  UpdateKey update_of(std::size_t i, std::uint64_t seq) const { return {world.nodes[i].stream, seq}; }
  std::uint64_t held(std::size_t at, std::size_t of) const {
    const auto& streams = world.nodes[at].store->have().streams();
    const auto found = streams.find(world.nodes[of].stream);
    return found == streams.end() ? 0 : ranges_count(found->second);
  }

  std::vector<FakeAuditor> auditors;  // first: the protocols refer to them
  World world;
};

}  // namespace rumor::gossip::test
