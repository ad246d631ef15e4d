// WithheldStates: how many drawn segments in a row each peer has left without the state that it owes
// (runtime/AUDIT.md, "Withheld states").
//
// A peer gives each asker one state at once and one for every ten of its segments (state_shares.h). Here it owes a
// little less, one for every twelve, so that a wish which an honest peer must refuse is not held against it.
//
// Thread: one owner. Memory: 60 bytes a peer that was asked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "runtime/base/types.h"

namespace rumor {

class WithheldStates {
 public:
  static constexpr std::uint32_t warned_at = 5;
  static constexpr double saved_max = 4, segments_for_one = 12;

  // This peer is asked for the state at the start of its segment with this number. Whether it owes one.
  bool ask(const NodeId& peer, const StreamId& stream, std::uint64_t segment) {
    Of& its = peers_.try_emplace(peer, Of{stream, segment}).first->second;
    if (its.stream != stream) its = {stream, segment, 1, its.in_a_row};  // another process, which owes one at once
    if (segment > its.segment) {
      const double earned = static_cast<double>(segment - its.segment) / segments_for_one;
      its.owed = std::min(saved_max, its.owed + earned);
      its.segment = segment;
    }
    if (its.owed < 1) return false;
    its.owed -= 1;
    return true;
  }
  // It gave one that it did not owe, so it owes the next one later.
  void given_early(const NodeId& peer) {
    if (const auto at = peers_.find(peer); at != peers_.end()) at->second.owed = std::max(0.0, at->second.owed - 1);
  }
  // It gave one that it owed, in time.
  void given(const NodeId& peer) {
    if (const auto at = peers_.find(peer); at != peers_.end()) at->second.in_a_row = 0;
  }
  // It owed one and gave none, or too late. Whether a warning is due.
  bool withheld(const NodeId& peer) { return ++peers_[peer].in_a_row == warned_at; }
  std::uint32_t in_a_row(const NodeId& peer) const {
    const auto at = peers_.find(peer);
    return at == peers_.end() ? 0 : at->second.in_a_row;
  }
  // The peer with the most, where that is worth a warning; zero: there is none.
  NodeId worst() const {
    NodeId peer = {};
    std::uint32_t most = warned_at - 1;
    for (const auto& [node, its] : peers_)
      if (its.in_a_row > most) peer = node, most = its.in_a_row;
    return peer;
  }

 private:
  struct Of {
    StreamId stream = {};
    std::uint64_t segment = 0;  // the newest that was asked for
    double owed = 1;
    std::uint32_t in_a_row = 0;
  };
  std::map<NodeId, Of> peers_;
};

}  // namespace rumor
