// Copies: the exchange of runs whose peers have models of their own (PROTOCOL.md 6.14). Each link carries the public
// copies of its two ends, and nothing else.
//
// Copies owns the exchange of a link: it holds the neighbour's copy, compares digests, and says when training may
// begin. CopyGiver gives our own copy.
//
// Thread: one owner, as Protocol. Memory: that of CopyGiver, and copies that arrive.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "gossip/contract/copy_port.h"
#include "gossip/copies/copy_giver.h"
#include "gossip/links/exchange.h"

namespace rumor::gossip {

class Copies final : public Exchange {
 public:
  static constexpr Duration digest_changed = 1s, digest_idle = 10s;
  // Training waits at the beginning, since links that come later cost copies: until the members are known, and until
  // there are links enough.
  static constexpr Duration members_awaited = 3s, links_awaited = 5s;

  // Both must outlive the exchange.
  Copies(Core& core, CopyPort& port) : core_(core), port_(port), giver_(core, port) {}

  FrameUse frames() const override { return FrameUse::copies; }
  bool links_are_cheap() const override { return false; }  // each new link carries two whole copies
  // A copy is of less use the older it is: little may wait.
  BacklogMarks backlog_marks() const override {
    return {limits::link_backlog_high / 8, limits::link_backlog_low / 8};
  }

  void on_admitted(Link& link, const Hello& hello) override;
  void on_detached(Link& link) override;
  void on_frame(Link& link, const Frame& frame) override;
  void on_backlog(Link& link) override;

  void start() override {}
  void publish(const StoredUpdate& update) override;
  bool may_publish(TimePoint) const override { return giver_.may_publish(); }
  void finished_changed() override;
  void rule_changed() override {}
  // Errors: Errc::usage, always.
  Result<void> revoke(const Revocation& revocation) override;

  void end_turn(bool alone) override;
  void tick() override;
  TimePoint due() const override { return due_; }

  // We have a model to go on with: our own of an earlier life, a neighbour's, or the one that everybody begins with.
  bool ready() const override { return ready_; }
  std::string waiting_for() const override;
  // The digest of the copy of that neighbour which is held here.
  std::optional<ReplicaDigest> expected_digest(const Link& link, const ReplicaDigest&) const override {
    return port_.digest_of(link.node);
  }
  bool has_converged(const Link&, const ReplicaDigest&) const override { return true; }  // copies stay different
  void check_invariants() const override;

 private:
  // A link, with the copy of its other end that is here.
  struct Side {
    Digest sent_digest;  // our last
    TimePoint digest_sent_at;
    bool has_model = false;  // other than the weights that everybody begins with, when it greeted or since
    bool following = false;  // it is held, and kept as new as it may be
    std::uint64_t seq = 0;   // of their newest update here
    std::optional<Copy::Begin> coming;  // the copy that arrives
    Bytes arrived;
  };

  // One overload for each frame of this exchange.
  void on(Link& link, const CopyAsk& ask);
  void on(Link& link, const Copy& piece);
  void on(Link& link, const Data& message);
  void on(Link& link, const DataMore& message);
  void on(Link& link, const Digest& digest);

  void give(Link& link);
  void follow(Link& link, Side& side, std::uint64_t seq);
  void begin_with(const NodeId& node);
  void on_whole(Link& link, const Data& message);
  void send_digest(Link& link, bool reply);

  Core& core_;
  CopyPort& port_;
  CopyGiver giver_;
  std::map<LinkId, Side> sides_;  // one for each admitted link
  TimePoint due_ = never;
  TimePoint first_at_ = never;  // the first link was admitted
  bool others_began_ = false;   // an update of a neighbour has come
  bool ready_ = false;
};

}  // namespace rumor::gossip
