// Checkers: what must hold in every run, whatever is done to it, watched with an oracle that keeps its own
// books.
//
//   I1  an update is applied once in a replica's life, and is what its origin has sealed, header and payload
//   I2  fingerprint == F(initial) + sum of F(update) over the have-set, as the oracle adds it up; weights
//   agree I3  every queue keeps its bound (the protocol's own check_invariants(), and the bytes unsent on
//   each link) I4  nothing is sent on a link that is closed; nobody asks for the same instant without end I6
//   equal have-sets, equal fingerprints: follows from I2, and from no node calling the other diverged I7 what
//   a living node had when the faults ended is there at the end, or its loss has been said I8  at the end all
//   replicas are equal, bit for bit, to the oracle's own sum I9  when all is well again: few copies, short
//   delays I10 the overlay is connected, no node has too many links I12 after goodbye nothing is open
// L2: no node ends by itself, but for one of two with the same key (PROTOCOL.md 5.12). I13 where no key ever had two
// hosts, nobody says that two processes run with one: restarts do not count. I14 of two processes with one key that
// meet not the first one ends.
// I5 (signers) and I11 (bans) need signatures and bans, of which this version of the protocol has none; L1 is
// the liveness bound: after healing all replicas are equal within a time.
//
// Thread: one owner. Memory: a hash and a fingerprint for each update, a have-set for each host.
#pragma once

#include <map>
#include <vector>

#include "runtime/sim/world/protocol_world.h"

namespace rumor::sim {

class Checkers final : public WorldObserver {
 public:
  // `runs`: what the replicas of each run begin with; host i is of run i modulo their number. Empty: all hosts are of
  // one run, that of the world. Replicas are compared within a run.
  explicit Checkers(ProtocolWorld& world, const std::vector<SimModel>& runs = {});

  void started(HostId i) override;
  void sealed(HostId i, const gossip::StoredUpdate& update) override;
  void applied(HostId i, const gossip::UpdateHeader& header, HostId from) override;
  void replaced(HostId i) override;
  void turned(HostId i) override;

  // Weights and fingerprint of a host, read in full: O(params).
  void check_weights(HostId i);
  // All that living hosts hold, and what they have said is lost.
  gossip::HaveSet held() const;
  std::uint64_t said_lost() const;
  // I7: what was in `before` and nobody holds any more must have been said.
  void check_kept(const gossip::HaveSet& before);
  // I8, over all living hosts.
  void check_equal();
  // Everybody has as many links as it should have at least.
  bool meshed() const;
  // I10.
  void check_overlay();

  // All living hosts hold the same digest.
  bool equal() const;
  // Sealed since `from` by anybody: how many times it was sent too often, and how long deliveries took.
  struct Flow {
    std::uint64_t deliveries = 0, duplicates = 0;
    std::vector<Duration> delays;
  };
  void begin_flow();
  Flow end_flow();

  std::uint64_t updates() const { return books_.size(); }
  std::uint64_t payload_bytes() const { return payload_bytes_; }

 private:
  struct Entry {
    gossip::UpdateHeader header;
    std::shared_ptr<const Bytes> payload;
    TimePoint sealed_at;
  };
  struct Mirror {
    gossip::HaveSet have;
    std::uint64_t fingerprint = 0;
  };

  std::uint64_t duplicates() const;
  void check_identities(HostId i);
  std::size_t run_of(HostId i) const { return i % runs_.size(); }
  void check_equal(std::size_t run);
  void check_overlay(std::size_t run);
  std::map<NodeId, HostId> living(std::size_t run) const;
  void mark(HostId i, const gossip::UpdateHeader& header);

  ProtocolWorld& world_;
  struct Run {
    const SimModel* model = nullptr;
    std::uint64_t base = 0;  // fingerprint of the initial weights
  };
  std::vector<Run> runs_;
  std::map<UpdateKey, Entry> books_;
  std::vector<Mirror> mirrors_;
  std::uint64_t payload_bytes_ = 0;  // of all updates
  bool flowing_ = false;
  TimePoint flow_from_{};
  std::uint64_t duplicates_before_ = 0;
  Flow flow_;
  std::map<HostId, TimePoint> starts_;                           // of the process that is up
  std::map<NodeId, std::pair<HostId, TimePoint>> first_start_;  // of all that had this key
  bool cloned_ = false;  // a key has had two hosts
};

}  // namespace rumor::sim
