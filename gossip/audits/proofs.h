// Proofs: decides about proofs that an update is false, which everybody checks for himself (PROTOCOL.md 6.16).
//
// A proof that arrives is handed to the auditor of this node. What that finds is final, unless it cannot tell: then the
// word of most links decides, and it is asked again from time to time.
//
// Thread: one owner, as Protocol. Memory: waiting_max proofs, refuted_max refuted ones.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "gossip/contract/audit_port.h"
#include "gossip/links/core.h"

namespace rumor::gossip {

class Proofs {
 public:
  static constexpr std::size_t waiting_max = 16, refuted_max = 64;
  static constexpr Duration check_again = 10s;

  // `follow` takes back what a proof covers, and tells all links.
  Proofs(Core& core, std::function<void(const Revocation&)> follow) : core_(core), follow_(std::move(follow)) {}

  // Requires: a revocation of kind proven; there is an auditor.
  void on_proof(Link& link, const Revocation& proof);
  // The auditor's answer. A proof that is not waiting any more is ignored.
  void checked(const Revocation& proof, Checked verdict);
  void tick();
  TimePoint due() const { return due_; }

 private:
  struct Waiting {
    Revocation proof;
    std::set<NodeId> senders;
    TimePoint check_at = never;  // never: the auditor is at it
  };
  std::vector<Waiting>::iterator find(const Revocation& proof);
  // Most links have sent it.
  bool most_say_so(const Waiting& waiting) const;
  void accept(std::vector<Waiting>::iterator waiting);
  void refute(std::vector<Waiting>::iterator waiting);

  Core& core_;
  std::function<void(const Revocation&)> follow_;
  std::vector<Waiting> waiting_;
  std::set<Revocation> refuted_;
  TimePoint due_ = never;
};

}  // namespace rumor::gossip
