// Lives of the hosts of a ProtocolWorld: starts, ends, disks, own updates.
#include <algorithm>

#include "runtime/base/mutant.h"

#include "runtime/sim/world/protocol_world.h"
#include "runtime/sim/world/tag_keys.h"

namespace rumor::sim {

namespace {
constexpr std::size_t checkpoints_kept = 4;
}  // namespace

std::unique_ptr<PeerStore> ProtocolWorld::empty_store() {
  if (options_.payload_bytes != 0) return std::make_unique<PayloadStore>(pool_);
  return std::make_unique<SimStore>(options_.model);
}

// The protocol alone. A checkpoint that does not decode is left alone, and the peers have it all.
StartedPeer ProtocolWorld::protocol_peer(const PeerStart& start) {
  gossip::Options options;
  options.self = start.id;
  options.stream = start.stream;
  options.began = start.began;
  options.run = options_.payload_bytes != 0 ? PayloadPool::run() : options_.model.form.run;
  options.run_name = "sim";
  options.advertise = {start.address};
  options.seeds = start.seeds;
  options.known_addresses = start.known;
  options.keys = std::make_shared<TagKeys>(start.id);
  options.coding = options_.mixed_codings ? static_cast<gossip::CodingRule>(start.host % 4) : options_.coding;
  std::unique_ptr<PeerStore> store = empty_store();
  const MemoryDisk before = *start.files;
  store->open(*start.files);
  const bool restored = start.checkpoint != nullptr && store->restore(*start.checkpoint).ok();
  if (start.checkpoint != nullptr && !restored) {
    *start.files = before;
    store = empty_store();
    store->open(*start.files);
  }
  store->replay();
  return {std::make_unique<ProtocolPeer>(std::move(options), std::move(store), Prng(start.chance_seed)), restored};
}

// The newest checkpoint as the fault leaves it.
std::optional<Bytes> ProtocolWorld::read_disk(HostId i, DiskFault fault) {
  Host& host = hosts_[i];
  if (fault == DiskFault::lost) {
    host.disk.clear();
    host.known.clear();
    host.files.files.clear();
  }
  if (fault == DiskFault::torn || fault == DiskFault::flipped) damage_files(host.files, fault);
  const std::vector<Bytes>* disk = &host.disk;
  if (fault == DiskFault::foreign) disk = &hosts_[chance_.below(hosts_.size())].disk;
  if (disk->empty()) return std::nullopt;
  std::size_t which = disk->size() - 1;
  if (fault == DiskFault::stale) which = chance_.below(disk->size());
  Bytes bytes = (*disk)[which];
  if (fault == DiskFault::torn) bytes.resize(chance_.below(bytes.size()));
  if (fault == DiskFault::flipped) {
    const std::uint64_t at = chance_.below(bytes.size());
    bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1u << chance_.below(8)));
  }
  return bytes;
}

void ProtocolWorld::start_peer(HostId i, DiskFault fault, std::uint64_t chance_seed) {
  Host& host = hosts_[i];
  const std::optional<Bytes> checkpoint = read_disk(i, fault);
  const PeerStart start{i,          host.life,  host.id,     host.stream,
                        host.address, host.seeds, host.known, &host.files,
                        checkpoint ? &*checkpoint : nullptr,  chance_seed,
                        static_cast<std::uint64_t>(now_.time_since_epoch() / Duration{1ms})};
  StartedPeer started = options_.make_peer ? options_.make_peer(start) : protocol_peer(start);
  host.peer = std::move(started.peer);
  if (!checkpoint) return;
  const bool damaged = fault == DiskFault::torn || fault == DiskFault::flipped;
  if (started.restored && damaged) violate("I2", i, "takes up a damaged checkpoint");
  if (!started.restored && !damaged) violate("I2", i, "does not take up its own checkpoint");
}

// The last writes of each file did not reach the platter, or one bit of it is another.
void ProtocolWorld::damage_files(MemoryDisk& disk, DiskFault fault) {
  for (auto& [name, bytes] : disk.files) {
    if (bytes.empty()) continue;
    const std::uint64_t at = chance_.below(bytes.size());
    if (fault == DiskFault::torn) {
      const std::uint64_t tail = std::min<std::uint64_t>(bytes.size(), 400);
      const auto from = bytes.end() - static_cast<std::ptrdiff_t>(chance_.below(tail + 1));
      chance_.chance(1, 2) ? void(bytes.erase(from, bytes.end()))
                           : std::fill(from, bytes.end(), std::uint8_t{0});
    } else {
      bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1u << chance_.below(8)));
    }
  }
}

void ProtocolWorld::start(HostId i, DiskFault fault, Duration wait) {
  Host& host = hosts_[i];
  RUMOR_CHECK(!host.up() && !host.stranger);
  ++host.life;
  host.seq = 0;
  host.crash_armed = false;
  host.busy_until = now_;
  host.wake_at = never;
  if (options_.clocks_begin_at_start) host.clock.restart(now_);
  Prng own = Prng::named(options_.seed, "life", (std::uint64_t{i} << 32) + (mutant(43) ? 0 : host.life));
  host.stream = gossip::stream_of(host.id, own.next());
  start_peer(i, fault, own.next());
  if (!host.up()) return;
  for (WorldObserver* observer : observers_) observer->started(i);
  trace(7, i);
  const auto begin = [this, i] {
    Host& starting = hosts_[i];
    turn(i, i, [&](gossip::Outbox& out) { starting.peer->start(starting.clock.read(now_), out); });
  };
  if (wait == Duration{0}) return begin();
  host.busy_until = now_ + wait;
  at(host.busy_until, [this, i, begin, life = host.life] {
    if (hosts_[i].up() && hosts_[i].life == life) begin();
  });
}

void ProtocolWorld::kill(HostId i, bool silently) {
  Host& host = hosts_[i];
  trace(8, i);
  if (host.up()) {
    for (WorldObserver* observer : observers_) observer->ended(i);
    host.lost_before += host.peer->protocol().counters().updates_lost;
    host.known.clear();
    for (const gossip::KnownAddress& known : host.peer->protocol().known_addresses())
      host.known.push_back(known.address);
  }
  host.peer.reset();
  host.stranger.reset();
  ++host.life;
  fabric_.drop_host(i, silently, now_);
}

void ProtocolWorld::leave(HostId i) {
  Host& host = hosts_[i];
  if (!host.up()) return;
  save_checkpoint(i);
  turn(i, i, [&](gossip::Outbox& out) { host.peer->leave(host.clock.read(now_), out); });
  if (host.up()) kill(i, false);
}

void ProtocolWorld::save_checkpoint(HostId i) {
  Host& host = hosts_[i];
  if (!host.up()) return;
  if (auto bytes = host.peer->checkpoint()) write_checkpoint(host, std::move(*bytes));
}

void ProtocolWorld::write_checkpoint(Host& host, Bytes bytes) {
  if (host.files.full) return;
  host.disk.push_back(std::move(bytes));
  if (host.disk.size() > checkpoints_kept) host.disk.erase(host.disk.begin());
}

void ProtocolWorld::publish(HostId i) {
  Host& host = hosts_[i];
  if (!host.up() || host.mute || host.busy_until > now_ || !host.peer->protocol().ready_to_train()) return;
  // Payloads without content measure what the links carry at a given load: nobody slows down there.
  const bool waits = options_.payload_bytes == 0 && !host.peer->protocol().may_publish(host.clock.read(now_));
  if (waits) return;
  Prng content =
      Prng::named(options_.seed, "update", (std::uint64_t{i} << 40) + (host.life << 24) + host.seq);
  ++host.seq;
  trace(9, i);
  turn(i, i,
       [&](gossip::Outbox& out) { host.peer->publish(host.seq, content, host.clock.read(now_), out); });
}

void ProtocolWorld::set_finished(HostId i, bool finished) {
  Host& host = hosts_[i];
  if (!host.up()) return;
  turn(i, i, [&](gossip::Outbox& out) { host.peer->set_finished(finished, host.clock.read(now_), out); });
}

}  // namespace rumor::sim
