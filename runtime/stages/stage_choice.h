// Which stage a peer serves that chooses for itself (gossip/PIPELINE.md 11): choose_stage() at its start, StageWatch
// while it serves one.
//
// Thread: plain values and functions, one owner of a StageWatch. Costs: O(n log n) for n live peers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/time.h"
#include "runtime/base/types.h"

namespace rumor {

// A live peer of the pipeline, other than this one.
struct StagePeer {
  NodeId node;
  std::uint32_t stage = 0;
};

struct StageChoice {
  std::uint32_t stage = 0;
  std::string why;  // for people: "stage 2 has no peer"
};

// The stage with fewest live peers. Among equals `kept`, whose weights this peer has; else drawn by its identity.
// Requires: stages >= 1. Peers of stages beyond are not counted.
StageChoice choose_stage(const NodeId& self, std::uint32_t stages, const std::vector<StagePeer>& live,
                         std::optional<std::uint32_t> kept = {});

// Tells a peer when to look who lives, and when it is its turn to move. One watch for each stage that it serves.
class StageWatch {
 public:
  static constexpr Duration stalled_after = 3s;  // without a counted micro-batch, until it looks
  static constexpr Duration look_every = 1s;     // from then on
  static constexpr Duration empty_for = 6s;      // before the first of the others moves
  static constexpr Duration turn_of_each = 10s;  // longer than a look and a move take

  StageWatch(const NodeId& self, std::uint64_t stage, std::uint64_t stages)
      : self_(self), stage_(static_cast<std::uint32_t>(stage)), stages_(static_cast<std::uint32_t>(stages)) {}

  // Whether to look now. `counted`: micro-batches in own steps since the start. `trains`: false while it downloads, and
  // at the end of the run; it never moves then. Call it often; true once for each look.
  bool wants_look(TimePoint now, std::uint64_t counted, bool trains);
  // The result of a look. Returns the stage to move to, when it is this peer's turn.
  std::optional<StageChoice> on_look(TimePoint now, const std::vector<StagePeer>& live);

 private:
  NodeId self_;
  std::uint32_t stage_, stages_;
  std::uint64_t counted_ = 0;
  TimePoint counted_at_{}, look_at_{};
  std::uint32_t empty_ = 0;  // the stage that all looks since `empty_since_` found empty; 0: none
  TimePoint empty_since_{};
  std::int64_t rank_ = 0;  // the highest since then
};

}  // namespace rumor
