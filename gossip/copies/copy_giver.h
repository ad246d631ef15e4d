// CopyGiver: gives our public copy to the links that ask for it, and keeps it new there (PROTOCOL.md 6.14.1 to 6.14.5).
//
// A link gets the updates that it lacks, one after the other. Where these are no longer kept, or the link holds
// nothing, it gets the whole copy in pieces first. A backlogged link gets nothing until its backlog has ended.
//
// Copies owns it and calls give() whenever a link may take more. Thread: one owner, as Protocol. Memory: own updates as
// far as they are shorter than a copy, and one copy for all links that are getting it whole.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "gossip/contract/copy_port.h"
#include "gossip/links/core.h"

namespace rumor::gossip {

class CopyGiver {
 public:
  static constexpr std::size_t recent_bytes_min = 8 << 20;
  static constexpr std::uint32_t own_index = 0;  // of the stream of a greeting, on its link: it needs no other name

  // Both must outlive it.
  CopyGiver(Core& core, const CopyPort& port) : core_(core), port_(port) {}

  // The link may ask from now on, until it is lost.
  void admitted(const Link& link) { places_[link.id]; }
  void link_lost(const Link& link) { places_.erase(link.id); }

  // Takes the ask of a link; give() then begins. Closes the link when it asks twice. Requires: admitted().
  void on_ask(Link& link, const CopyAsk& ask);
  // Gives as much as the link may take in one call; its backlog is only known afterwards. Returns when to call it
  // again; never: when an update is made, or a backlog ends. Requires: admitted().
  TimePoint give(Link& link);
  // Keeps an own update, which is Core::published now.
  void keep(const StoredUpdate& update);
  // Our copy has become another one, with no update yet: every link that has asked gets it whole.
  void begin_anew();
  // Enough of the links that hold our copy can take more at once.
  bool may_publish() const;
  void check_invariants() const;

 private:
  // A copy on its way to a link.
  struct Whole {
    std::shared_ptr<const Bytes> bytes;
    std::uint64_t seq = 0;  // of our newest update in it
    std::size_t sent = 0;
  };
  // How far our copy is at the other end of a link.
  struct Place {
    bool asked = false;
    std::uint64_t next = 0;  // update to give
    std::optional<Whole> whole;
  };

  bool keeps_from(std::uint64_t seq) const;
  void begin_whole(Place& place);
  std::size_t give_piece(Link& link, Place& place);
  std::size_t give_update(Link& link, Place& place);

  Core& core_;
  const CopyPort& port_;
  std::map<LinkId, Place> places_;   // one for each admitted link
  std::deque<StoredUpdate> recent_;  // ours, ascending
  std::size_t recent_bytes_ = 0;
  std::shared_ptr<const Bytes> cut_;  // the copy that was made last, as of cut_seq_
  std::uint64_t cut_seq_ = 0;
};

}  // namespace rumor::gossip
