// SimPeer: what a host of a ProtocolWorld runs: the protocol with a small replica (protocol_peer.h), or a
// whole node that trains (training_peer.h). The world drives it, the checkers watch it.
//
// Thread: one owner.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gossip/protocol.h"
#include "runtime/replica/disk.h"
#include "runtime/replica/replica.h"
#include "runtime/sim/world/fabric.h"

namespace rumor::sim {

class SimPeer {
 public:
  virtual ~SimPeer() = default;

  // ---- inputs, as gossip::Protocol has them ----
  virtual void start(TimePoint now, gossip::Outbox& out) = 0;
  virtual void on_link_up(const gossip::LinkUp& up, TimePoint now, gossip::Outbox& out) = 0;
  virtual void on_frame(gossip::LinkId link, BytesView frame, TimePoint now, gossip::Outbox& out) = 0;
  virtual void on_link_down(gossip::LinkId link, const std::string& reason, TimePoint now,
                            gossip::Outbox& out) = 0;
  virtual void on_dial_failed(const std::string& address, const std::string& reason, TimePoint now,
                              gossip::Outbox& out) = 0;
  virtual void on_backlog(gossip::LinkId link, bool full, TimePoint now, gossip::Outbox& out) = 0;
  virtual void on_time(TimePoint now, gossip::Outbox& out) = 0;
  // With a goodbye, and a checkpoint where it writes its own.
  virtual void leave(TimePoint now, gossip::Outbox& out) = 0;
  // The world asks for own update number `seq`; a peer that trains makes its updates by itself.
  virtual void publish(std::uint64_t /*seq*/, Prng& /*content*/, TimePoint, gossip::Outbox&) {}
  virtual void set_finished(bool /*finished*/, TimePoint, gossip::Outbox&) {}
  // The computation whose cost take_compute() gave is over.
  virtual void on_computed(TimePoint, gossip::Outbox&) {}
  virtual TimePoint next_deadline() const = 0;

  // ---- questions ----
  virtual const gossip::Protocol& protocol() const = 0;
  virtual const gossip::HaveSet& have() const = 0;
  virtual std::uint64_t fingerprint() const = 0;
  virtual const Replica* replica() const { return nullptr; }  // null: it has no weights
  virtual bool log_in_bounds() const { return true; }
  virtual void check_invariants() const { protocol().check_invariants(); }
  // Why it has ended by itself; empty: it has not.
  virtual std::string failure() const { return {}; }
  // The checkpoint file as of now; nothing where it writes its own.
  virtual std::optional<Bytes> checkpoint() const { return std::nullopt; }

  // ---- since the last call of each ----
  std::vector<gossip::StoredUpdate> take_sealed() { return std::move(sealed_); }  // own updates
  virtual std::vector<gossip::UpdateHeader> take_applied() {
    return std::move(applied_);
  }  // one by one, of others
  virtual bool take_replaced() {
    return std::exchange(replaced_, false);
  }  // restored, or took over a snapshot
  std::optional<Bytes> take_checkpoint() { return std::exchange(written_, std::nullopt); }  // to be written
  std::optional<Duration> take_compute() {
    return std::exchange(compute_, std::nullopt);
  }  // begun, and its cost

 protected:
  std::vector<gossip::StoredUpdate> sealed_;
  std::vector<gossip::UpdateHeader> applied_;
  bool replaced_ = false;
  std::optional<Bytes> written_;
  std::optional<Duration> compute_;
};

// The surroundings in which a process starts.
struct PeerStart {
  HostId host = 0;
  std::uint64_t life = 0;  // of the host, counted from 1
  NodeId id;
  StreamId stream;
  std::string address;
  std::vector<std::string> seeds, known;
  MemoryDisk* files = nullptr;        // log and downloads; outlives the peer
  const Bytes* checkpoint = nullptr;  // null: none
  std::uint64_t chance_seed = 0;
  std::uint64_t began = 0;  // when, by the world's clock: milliseconds
};

struct StartedPeer {
  std::unique_ptr<SimPeer> peer;
  bool restored = false;  // from the checkpoint
};

using PeerMaker = std::function<StartedPeer(const PeerStart&)>;

}  // namespace rumor::sim
