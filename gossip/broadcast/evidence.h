// Evidence: what happens when equal sets of updates give different weights (PROTOCOL.md 6.11).
//
// Each side first tests itself. If both are sound, some origin has signed two updates under one name; the two
// sides show each other hashes of the headers they hold, find the name, and prove it with the two signatures.
// Every node then keeps the header of smaller hash, subtracts the other, and puts the signer out.
//
// Thread: one owner, as Protocol. Memory: equivocations_max equivocations; hashes are looked at as they come.
#pragma once

#include <vector>

#include "gossip/broadcast/state.h"
#include "gossip/overlay/overlay.h"

namespace rumor::gossip {

class Evidence {
 public:
  static constexpr Duration judged_after = 2s, look_again = 10s;
  static constexpr std::size_t equivocations_max = 1'024, headers_max = 16'384, shown_max = 16;

  Evidence(BroadcastState& state, Overlay& overlay)
      : core_(state.core), streams_(state.streams), flow_(state.flow), overlay_(overlay) {}

  // The link's digest says, for the second time, that its weights are others with the same updates.
  void investigate(Link& link);
  void on_headers(Link& link, const Headers& headers);
  // Closes the link for a proof that proves nothing.
  void on_equivocation(Link& link, const Equivocation& shown);
  // Headers that came for names we hold, and differ from ours.
  void look_at(const std::vector<UpdateHeader>& suspects);
  void tick();
  TimePoint due() const { return due_; }

 private:
  void send_hashes(Link& link);
  // Requires: `seen` is signed.
  void compare(const UpdateHeader& seen);
  bool is_signed(const UpdateHeader& header) const;
  void convict(const UpdateHeader& one, const UpdateHeader& other, const Link* from);
  void keep_winner(const UpdateHeader& winner, const Hash256& winner_hash);

  Core& core_;
  Streams& streams_;
  UpdateFlow& flow_;
  Overlay& overlay_;
  TimePoint due_ = never;
};

}  // namespace rumor::gossip
