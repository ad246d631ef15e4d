// CountedBooks: which replica counts which micro-batch, over all stages and the whole run. It sees all replicas at
// once, so it finds what none of them can (gossip/PIPELINE.md, 3):
//
//   P1  a stage counts a micro-batch once at most
//   P2  a stage counts no micro-batch that the stage below has not counted
//
// Thread: one owner. Memory: some bytes for each micro-batch and stage.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gossip/pipeline/pipeline.h"
#include "runtime/sim/world/fabric.h"

namespace rumor::sim {

class CountedBooks {
 public:
  explicit CountedBooks(std::size_t stages) : of_stage_(stages) {}

  struct Broken {
    std::string invariant, text;
  };
  // Enters what a replica counts by now. Call it after each of its turns. `stage`: from 0; `life`: of the host.
  std::optional<Broken> read(std::size_t stage, HostId host, std::uint64_t life, const gossip::Pipeline& pipeline);

  // Micro-batches that any replica of the stage has counted.
  std::uint64_t counted(std::size_t stage) const { return of_stage_[stage].size(); }
  // Micro-batches that the first stage has counted and this one has not.
  std::uint64_t missing(std::size_t stage) const;

 private:
  struct Entry {
    HostId host = 0;
    std::uint64_t life = 0;
    gossip::Slot slot = 0;
    bool operator==(const Entry&) const = default;
  };
  std::vector<std::map<gossip::MicroBatchName, Entry>> of_stage_;
};

}  // namespace rumor::sim
