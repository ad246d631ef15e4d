// NeighbourGraph: who exchanges with whom where nobody exchanges with all.
//
// degree / 2 random cycles, each through all peers that are here: so the graph is symmetric, connected whatever leaves,
// and random enough to mix fast. A peer that leaves is cut out of each cycle and those beside it are linked; one that
// comes back is put in at a random place of each. (Law, Siu, INFOCOM 2003, "Distributed construction of random
// expander networks".) A peer has `degree` neighbours, or fewer where two cycles lay the same link, or where fewer
// peers are here.
//
// Thread: plain values; equal seeds give equal graphs.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/prng.h"

namespace rumor::sim {

class NeighbourGraph {
 public:
  // All are here. Requires: an even degree.
  NeighbourGraph(std::size_t peers, std::uint32_t degree, std::uint64_t seed);

  // Requires: it is here; it is not.
  void leave(std::size_t peer);
  void join(std::size_t peer);
  // Neighbours of each peer, ascending; none of one that is away.
  const std::vector<std::vector<std::size_t>>& neighbours() const { return neighbours_; }

 private:
  void link();

  Prng draw_;
  std::vector<std::vector<std::size_t>> cycles_, neighbours_;
};

}  // namespace rumor::sim
