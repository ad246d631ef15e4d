// Copies: what takes the place of spreading, repair and joining where peers have models of their own: each link
// carries the public copies of its two ends, and nothing else (PROTOCOL.md 6.14).
//
// Thread: one owner, as Protocol. Memory: own updates as far as they are shorter than a copy, a copy being given,
// once for all links that get it, and copies that arrive.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "gossip/contract/copy_port.h"
#include "gossip/links/core.h"

namespace rumor::gossip {

class Copies {
 public:
  static constexpr Duration digest_changed = 1s, digest_idle = 10s;
  static constexpr std::size_t recent_bytes_min = 8 << 20;
  // Before training begins, since links that come later cost copies: until one knows who there is; until one has links
  // enough.
  static constexpr Duration members_awaited = 3s, links_awaited = 5s;

  Copies(Core& core, CopyPort& port) : core_(core), port_(port) {}

  // The link has just been admitted by this greeting.
  void admitted(Link& link, const Hello& hello);
  void on_ask(Link& link, const CopyAsk& ask);
  void on_copy(Link& link, const Copy& piece);
  void on_data(Link& link, const Data& message);
  void on_data_more(Link& link, const DataMore& message);
  void on_digest(Link& link, const Digest& digest);
  void on_backlog(Link& link, bool full);
  void link_lost(Link& link);

  // An own update, in the store already.
  void publish(const StoredUpdate& update);
  // Of the links that hold our copy, enough can take more at once.
  bool may_publish() const;
  void finished_changed();
  // At the end of every handler of Protocol. `alone`: nobody can be asked for a copy to begin with.
  void flush(bool alone);
  void tick();
  TimePoint due() const { return due_; }

  // We have a model to go on with: our own of an earlier life, a neighbour's, or the one that everybody begins with.
  bool ready() const { return ready_; }
  // A copy to begin with is on its way; empty otherwise.
  std::string waiting_for() const;
  void check_invariants() const;

 private:
  // A copy on its way to a link.
  struct Whole {
    std::shared_ptr<const Bytes> bytes;
    std::uint64_t seq = 0;  // of our newest update in it
    std::size_t sent = 0;
  };
  struct Side {
    // Ours, at the other end.
    bool asked = false;
    std::uint64_t next = 0;  // update to give
    std::optional<Whole> whole;
    // Theirs, here.
    bool has_model = false;  // other than the weights that everybody begins with, when it greeted or since
    bool following = false;  // it is held, and kept as new as it may be
    std::uint64_t seq = 0;   // of their newest update here
    std::optional<Copy::Begin> coming;  // the copy that arrives
    Bytes arrived;
  };

  void give(Link& link);
  std::size_t give_piece(Link& link, Side& side);
  bool keeps_from(std::uint64_t seq) const;
  void begin_whole(Side& side);
  void follow(Link& link, Side& side, std::uint64_t seq);
  void begin_with(const NodeId& node);
  void on_whole(Link& link, const Data& message);
  void send_digest(Link& link, bool reply);

  Core& core_;
  CopyPort& port_;
  std::map<LinkId, Side> sides_;     // of admitted links
  std::deque<StoredUpdate> recent_;  // ours, ascending
  std::size_t recent_bytes_ = 0;
  std::shared_ptr<const Bytes> cut_;  // the copy that was made last, as of cut_seq_
  std::uint64_t cut_seq_ = 0;
  TimePoint due_ = never;
  TimePoint first_at_ = never;  // the first link was admitted
  bool others_began_ = false;       // with what we hold of them
  bool ready_ = false;
};

}  // namespace rumor::gossip
