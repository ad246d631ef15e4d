// PlannedFault: one thing that goes wrong in a simulated cluster at a given time; a file lists them.
//
// A fault file is TOML, a table each:
//
//   [[fault]]
//   kind = "partition"   # kill: the nodes end at once and come back empty; partition: the nodes on one side, the
//                        # rest on the other; reset: one link of each of the nodes breaks
//   keeps_disk = true    # of kill, in a run with stages: the nodes come back from their checkpoints; default false
//   at_s = 20            # virtual seconds from the start
//   lasts_s = 10         # of kill and partition: until they come back, until it heals
//   nodes = [0, 3]
//   every_s = 60         # again and again, until training ends; left out: once
//
// At least two nodes are always left alive, so that the trained weights survive. In a run with stages (stages/) each
// stage keeps one; nodes that keep their disks may all end.
//
// Thread: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/time.h"

namespace rumor::sim {

struct PlannedFault {
  enum class Kind : std::uint8_t { kill, partition, reset };
  Kind kind = Kind::kill;
  Duration at{0}, lasts{0};
  Duration every{0};  // 0: once
  std::vector<std::size_t> nodes;
  bool keeps_disk = false;  // of kill
};

// For a cluster of so many nodes. Errors: Errc::usage naming the source, the entry and what would be right.
Result<std::vector<PlannedFault>> parse_fault_plan(std::string_view text, const std::string& source,
                                                   std::size_t cluster_nodes);

}  // namespace rumor::sim
