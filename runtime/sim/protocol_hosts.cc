// Lives of the hosts of a ProtocolWorld: starts, ends, disks, own updates.
#include <algorithm>

#include "runtime/base/mutant.h"

#include "runtime/sim/protocol_world.h"
#include "runtime/sim/tag_keys.h"

namespace rumor::sim {

namespace {
constexpr std::size_t checkpoints_kept = 4;
}  // namespace

std::unique_ptr<PeerStore> ProtocolWorld::empty_store() {
  if (options_.payload_bytes != 0) return std::make_unique<PayloadStore>(pool_);
  return std::make_unique<SimStore>(options_.model);
}

// The newest checkpoint as the fault leaves it; what does not decode is left alone, and the peers have it
// all.
void ProtocolWorld::read_disk(HostId i, DiskFault fault) {
  Host& host = hosts_[i];
  if (fault == DiskFault::lost) {
    host.disk.clear();
    host.known.clear();
    host.files.files.clear();
  }
  if (fault == DiskFault::torn || fault == DiskFault::flipped) damage_files(host.files, fault);
  host.store = empty_store();
  const MemoryDisk before = host.files;
  host.store->open(host.files);
  const std::vector<Bytes>* disk = &host.disk;
  if (fault == DiskFault::foreign) disk = &hosts_[chance_.below(hosts_.size())].disk;
  if (disk->empty()) return host.store->replay();
  std::size_t which = disk->size() - 1;
  if (fault == DiskFault::stale) which = chance_.below(disk->size());
  Bytes bytes = (*disk)[which];
  const bool damaged = fault == DiskFault::torn || fault == DiskFault::flipped;
  if (fault == DiskFault::torn) bytes.resize(chance_.below(bytes.size()));
  if (fault == DiskFault::flipped) {
    const std::uint64_t at = chance_.below(bytes.size());
    bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1u << chance_.below(8)));
  }
  const bool read = host.store->restore(bytes).ok();
  if (read && damaged) violate("I2", i, "takes up a damaged checkpoint");
  if (!read && !damaged) violate("I2", i, "does not take up its own checkpoint");
  if (!read) {
    host.files = before;
    host.store = empty_store();
    host.store->open(host.files);
  }
  host.store->replay();
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

void ProtocolWorld::start(HostId i, DiskFault fault) {
  Host& host = hosts_[i];
  RUMOR_CHECK(!host.up() && !host.stranger);
  ++host.life;
  host.seq = 0;
  host.crash_armed = false;
  host.busy_until = now_;
  host.wake_at = never;
  host.clock.restart(now_);
  Prng own = Prng::named(options_.seed, "life", (std::uint64_t{i} << 32) + (mutant(43) ? 0 : host.life));
  host.stream = gossip::stream_of(host.id, own.next());
  read_disk(i, fault);
  gossip::Options options;
  options.self = host.id;
  options.stream = host.stream;
  options.run = options_.payload_bytes != 0 ? PayloadPool::run() : options_.model.form.run;
  options.run_name = "sim";
  options.advertise = {host.address};
  options.seeds = host.seeds;
  options.known_addresses = host.known;
  options.keys = std::make_shared<TagKeys>(host.id);
  options.coding = options_.mixed_codings ? static_cast<gossip::CodingRule>(i % 4) : options_.coding;
  host.protocol = std::make_unique<gossip::Protocol>(std::move(options), *host.store, Prng(own.next()));
  for (WorldObserver* observer : observers_) observer->started(i);
  trace(7, i);
  turn(i, i, [&](gossip::Outbox& out) { host.protocol->start(host.clock.read(now_), out); });
}

void ProtocolWorld::kill(HostId i, bool silently) {
  Host& host = hosts_[i];
  trace(8, i);
  if (host.up()) {
    host.lost_before += host.protocol->counters().updates_lost;
    host.known.clear();
    for (const gossip::KnownAddress& known : host.protocol->known_addresses())
      host.known.push_back(known.address);
  }
  host.protocol.reset();
  host.stranger.reset();
  ++host.life;
  fabric_.drop_host(i, silently, now_);
}

void ProtocolWorld::leave(HostId i) {
  Host& host = hosts_[i];
  if (!host.up()) return;
  save_checkpoint(i);
  turn(i, i, [&](gossip::Outbox& out) { host.protocol->leave(host.clock.read(now_), out); });
  if (host.up()) kill(i, false);
}

void ProtocolWorld::save_checkpoint(HostId i) {
  Host& host = hosts_[i];
  if (!host.up()) return;
  host.disk.push_back(host.store->checkpoint(host.id));
  if (host.disk.size() > checkpoints_kept) host.disk.erase(host.disk.begin());
}

void ProtocolWorld::publish(HostId i) {
  Host& host = hosts_[i];
  if (!host.up() || host.mute || host.busy_until > now_ || !host.protocol->ready_to_train()) return;
  // Payloads without content measure what the links carry at a given load: nobody slows down there.
  const bool waits = options_.payload_bytes == 0 && !host.protocol->may_publish(host.clock.read(now_));
  if (waits) return;
  Prng content =
      Prng::named(options_.seed, "update", (std::uint64_t{i} << 40) + (host.life << 24) + host.seq);
  const gossip::StoredUpdate update = host.store->seal(host.stream, host.id, ++host.seq, content);
  for (WorldObserver* observer : observers_) observer->sealed(i, update);
  trace(9, i);
  turn(i, i, [&](gossip::Outbox& out) { host.protocol->publish(update, host.clock.read(now_), out); });
}

void ProtocolWorld::set_finished(HostId i, bool finished) {
  Host& host = hosts_[i];
  if (!host.up()) return;
  turn(i, i, [&](gossip::Outbox& out) { host.protocol->set_finished(finished, host.clock.read(now_), out); });
}

}  // namespace rumor::sim
