#include "runtime/sim/methods/neighbour_graph.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/check.h"

namespace rumor::sim {

NeighbourGraph::NeighbourGraph(std::size_t peers, std::uint32_t degree, std::uint64_t seed)
    : draw_(Prng::named(seed, "neighbours")), cycles_(degree / 2), neighbours_(peers) {
  RUMOR_CHECK(degree % 2 == 0);
  for (auto& cycle : cycles_) {
    cycle.resize(peers);
    std::iota(cycle.begin(), cycle.end(), std::size_t{0});
    draw_.shuffle(std::span(cycle));
  }
  link();
}

void NeighbourGraph::leave(std::size_t peer) {
  for (auto& cycle : cycles_) {
    const auto at = std::find(cycle.begin(), cycle.end(), peer);
    RUMOR_CHECK(at != cycle.end());
    cycle.erase(at);
  }
  link();
}

void NeighbourGraph::join(std::size_t peer) {
  for (auto& cycle : cycles_) {
    RUMOR_CHECK(std::find(cycle.begin(), cycle.end(), peer) == cycle.end());
    cycle.insert(cycle.begin() + static_cast<std::ptrdiff_t>(draw_.below(cycle.size() + 1)), peer);
  }
  link();
}

void NeighbourGraph::link() {
  for (auto& list : neighbours_) list.clear();
  for (const auto& cycle : cycles_)
    for (std::size_t at = 0; at < cycle.size(); ++at) {
      const std::size_t a = cycle[at], b = cycle[(at + 1) % cycle.size()];
      if (a == b) continue;  // alone
      neighbours_[a].push_back(b);
      neighbours_[b].push_back(a);
    }
  for (auto& list : neighbours_) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
}

}  // namespace rumor::sim
