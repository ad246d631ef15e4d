// Attacker: an admitted host that breaks the rules of gossip/PROTOCOL.md, by kinds that a seed chooses.
//
// It greets honestly, since nobody gets further without; then it may send random bytes, honest frames with
// bits flipped, announcements of what does not exist, announcements of what it then withholds, or floods. It
// forges no update: without signatures a member could, and nothing in the protocol would notice.
//
// Thread: one owner. Memory: a few dozen frames.
#pragma once

#include <deque>
#include <map>

#include "gossip/wire/wire.h"
#include "runtime/sim/world/protocol_world.h"

namespace rumor::sim {

struct AttackKinds {
  bool random_bytes = false, flipped_bits = false, false_have = false, withholds = false, floods = false;
};

class Attacker final : public Stranger {
 public:
  // Dials hosts below `targets`.
  Attacker(ProtocolWorld& world, HostId self, HostId targets, AttackKinds kinds, std::uint64_t seed);

  void on_link_up(End end, const NodeId& peer) override;
  void on_frame(End end, BytesView frame) override;
  void on_closed(End end) override { links_.erase(key(end)); }
  void on_turn() override;

 private:
  struct Link {
    End end;
    bool greeted = false;
    std::map<StreamId, std::uint32_t> ours;  // indices that we have defined
    std::map<std::uint32_t, StreamId> theirs;
  };
  static std::uint64_t key(End end) {
    return 2 * std::uint64_t{end.connection} + static_cast<unsigned>(end.side);
  }

  void send(Link& link, Bytes frame) { world_.stranger_sends(link.end, std::move(frame)); }
  std::uint32_t name(Link& link, const StreamId& stream);
  void send_random(Link& link);
  void send_flipped(Link& link);
  void send_false_have(Link& link);
  void flood(Link& link);
  void repeat_have(const Link& from, const gossip::Have& have);

  ProtocolWorld& world_;
  HostId self_, targets_;
  AttackKinds kinds_;
  Prng prng_;
  StreamId stream_;
  std::map<std::uint64_t, Link> links_;
  std::deque<Bytes> heard_;
  std::map<StreamId, std::uint64_t> heads_;
};

}  // namespace rumor::sim
