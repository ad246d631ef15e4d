#include "runtime/sim/world/protocol_world.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

constexpr Duration dial_timeout = 5s;
// A node that asks to be called again at once this often in a row does nothing else.
constexpr std::uint32_t spins_max = 200;
// A step of training on a slow processor.
constexpr int slow_compute = 10;

FabricOptions fabric_options(const WorldOptions& options) {
  FabricOptions fabric = options.fabric;
  fabric.hosts = options.hosts;
  fabric.seed = options.seed;
  return fabric;
}

}  // namespace

ProtocolWorld::ProtocolWorld(WorldOptions options)
    : options_(std::move(options)),
      chance_(Prng::named(options_.seed, "world")),
      fabric_(
          fabric_options(options_),
          [this](TimePoint at, FabricEvent event) {
            queue_.push(at, Event{Event::Kind::fabric, event});
          },
          [this](End end, bool full) {
            const HostId host = fabric_.host(end);
            queue_.push(now_, Event{Event::Kind::backlog,
                                    {},
                                    host,
                                    full ? 1u : 0u,
                                    static_cast<std::uint64_t>(link_of(end)),
                                    hosts_[host].life});
          }),
      hosts_(options_.hosts) {
  pool_.payload_bytes = options_.payload_bytes;
  for (HostId i = 0; i < hosts_.size(); ++i) {
    Prng names = Prng::named(options_.seed, "name", i);
    for (auto& byte : hosts_[i].id.bytes) byte = static_cast<std::uint8_t>(names.next());
    hosts_[i].address = address_of(i);
  }
}

ProtocolWorld::~ProtocolWorld() = default;

std::string ProtocolWorld::address_of(HostId i) {
  return str("h", i, ":7000");
}

// ---- driving ----

void ProtocolWorld::run_until(TimePoint until) {
  while (step(until)) {
  }
  now_ = std::max(now_, until);
}

bool ProtocolWorld::step(TimePoint until) {
  if (violation_ || queue_.empty() || queue_.next() > until) return false;
  const auto [at, event] = queue_.pop();
  now_ = at;
  ++events_;
  handle(event);
  return true;
}

void ProtocolWorld::at(TimePoint when, std::function<void()> call) {
  std::uint64_t slot = calls_.size();
  if (free_calls_.empty()) {
    calls_.push_back(std::move(call));
  } else {
    slot = free_calls_.back();
    free_calls_.pop_back();
    calls_[slot] = std::move(call);
  }
  Event event;
  event.value = slot;
  queue_.push(std::max(when, now_), event);
}

void ProtocolWorld::violate(std::string invariant, HostId host, std::string text, const UpdateKey& key) {
  if (!violation_) violation_ = Violation{std::move(invariant), std::move(text), host, key, now_};
}

void ProtocolWorld::trace(std::uint64_t kind, std::uint64_t a, BytesView bytes) {
  std::uint64_t h = mix64(trace_ ^ static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  h = mix64(h ^ kind ^ (a << 8) ^ (bytes.size() << 40));
  ByteReader in(bytes.first(std::min<std::size_t>(bytes.size(), 256)));
  while (in.remaining() >= 8) h = mix64(h ^ in.u64());
  while (in.remaining() > 0) h = mix64(h ^ in.u8());
  trace_ = h;
}

void ProtocolWorld::handle(const Event& event) {
  Host& host = hosts_[event.host];
  switch (event.kind) {
    case Event::Kind::fabric:
      return on_fabric(event);
    case Event::Kind::wake:
      return on_wake(event);
    case Event::Kind::dialled:
      return on_dialled(event);
    case Event::Kind::computed:
      return on_computed(event);
    case Event::Kind::backlog: {
      if (!host.up() || host.life != event.life) return;
      const gossip::LinkId link{event.value};
      return turn(event.host, event.host, [&](gossip::Outbox& out) {
        host.peer->on_backlog(link, event.other != 0, host.clock.read(now_), out);
      });
    }
    case Event::Kind::call: {
      const std::function<void()> call = std::move(calls_[event.value]);
      free_calls_.push_back(event.value);
      return call();
    }
  }
}

// ---- turns of a host ----

void ProtocolWorld::after_turn(HostId i, HostId from, gossip::Outbox& out) {
  Host& host = hosts_[i];
  if (host.handling > Duration{0}) host.busy_until = std::max(now_, host.busy_until) + host.handling;
  for (const gossip::StoredUpdate& update : host.peer->take_sealed())
    for (WorldObserver* observer : observers_) observer->sealed(i, update);
  if (host.peer->take_replaced())
    for (WorldObserver* observer : observers_) observer->replaced(i);
  for (const gossip::UpdateHeader& header : host.peer->take_applied())
    for (WorldObserver* observer : observers_) observer->applied(i, header, from);
  if (++turns_ % options_.invariants_every == 0) host.peer->check_invariants();
  for (WorldObserver* observer : observers_) observer->turned(i);
  if (auto bytes = host.peer->take_checkpoint()) write_checkpoint(host, std::move(*bytes));
  if (const auto takes = host.peer->take_compute()) {
    const Duration cost = *takes * (host.handling > Duration{0} ? slow_compute : 1);
    host.computed += cost;
    queue_.push(now_ + cost, Event{Event::Kind::computed, {}, i, 0, 0, host.life});
  }
  const bool dies = host.crash_armed && !out.empty();
  const std::size_t effects = dies ? chance_.below(out.size() + 1) : out.size();
  for (std::size_t e = 0; e < effects; ++e) carry_out(i, out[e]);
  if (!dies) return arm(i);
  host.crash_armed = false;
  kill(i, chance_.chance(1, 2));
}

void ProtocolWorld::arm(HostId i) {
  Host& host = hosts_[i];
  if (!host.up()) return;
  const TimePoint when = host.clock.when(host.peer->next_deadline(), now_);
  if (when >= host.wake_at) return;
  host.wake_at = when;
  queue_.push(when, Event{Event::Kind::wake,
                          {},
                          i,
                          0,
                          static_cast<std::uint64_t>(when.time_since_epoch().count()),
                          host.life});
}

void ProtocolWorld::on_wake(const Event& event) {
  Host& host = hosts_[event.host];
  if (!host.up() || host.life != event.life) return;
  if (static_cast<std::uint64_t>(host.wake_at.time_since_epoch().count()) != event.value) return;
  if (host.busy_until > now_) {
    host.wake_at = host.busy_until;
    Event later = event;
    later.value = static_cast<std::uint64_t>(host.wake_at.time_since_epoch().count());
    return queue_.push(host.wake_at, later);
  }
  host.wake_at = never;
  trace(5, event.host);
  turn(event.host, event.host,
       [&](gossip::Outbox& out) { host.peer->on_time(host.clock.read(now_), out); });
  if (!host.up() || host.wake_at > now_) {
    host.spins = 0;
  } else if (++host.spins > spins_max) {
    violate("I4", event.host, "asks for on_time() without end at one instant");
  }
}

void ProtocolWorld::on_computed(const Event& event) {
  Host& host = hosts_[event.host];
  if (!host.up() || host.life != event.life) return;
  if (host.busy_until > now_) return queue_.push(host.busy_until, event);
  trace(6, event.host);
  turn(event.host, event.host,
       [&](gossip::Outbox& out) { host.peer->on_computed(host.clock.read(now_), out); });
}

void ProtocolWorld::on_fabric(const Event& event) {
  if (!fabric_.event(event.fabric, now_)) return;
  const HostId i = fabric_.host({event.fabric.connection, event.fabric.side});
  if (hosts_[i].busy_until > now_) return queue_.push(hosts_[i].busy_until, event);
  if (auto arrival = fabric_.take(event.fabric)) on_arrival(*arrival);
}

void ProtocolWorld::on_arrival(Arrival& arrival) {
  const HostId i = fabric_.host(arrival.at);
  const HostId from = fabric_.host({arrival.at.connection, 1 - arrival.at.side});
  Host& host = hosts_[i];
  trace(arrival.closed ? 3 : 1, i, arrival.frame);
  if (host.stranger) {
    return arrival.closed ? host.stranger->on_closed(arrival.at)
                          : host.stranger->on_frame(arrival.at, arrival.frame);
  }
  if (!host.up()) return;
  for (WorldObserver* observer : observers_) observer->arrived(i, from, arrival.frame);
  turn(i, from, [&](gossip::Outbox& out) {
    const TimePoint local = host.clock.read(now_);
    if (arrival.closed) {
      host.peer->on_link_down(link_of(arrival.at), "closed by the peer", local, out);
    } else {
      host.peer->on_frame(link_of(arrival.at), arrival.frame, local, out);
    }
  });
}

// ---- effects ----

void ProtocolWorld::carry_out(HostId i, gossip::Effect& effect) {
  for (WorldObserver* observer : observers_) observer->asked(i, effect);
  if (auto* send = std::get_if<gossip::Send>(&effect)) {
    const End end = end_of(send->link);
    if (end.connection >= fabric_.connections() || fabric_.host(end) != i)
      return violate("I4", i, "sends on a link that it does not have");
    if (options_.loses && options_.loses(i, fabric_.host({end.connection, 1 - end.side}), send->frame)) return;
    fabric_.send(end, std::move(send->frame).joined(), send->lane == gossip::Lane::control, now_);
  } else if (auto* dials = std::get_if<gossip::Dial>(&effect)) {
    dial(i, dials->address);
  } else if (auto* close = std::get_if<gossip::Close>(&effect)) {
    const End end = end_of(close->link);
    if (!fabric_.is_open(end)) return;  // its end arrived in the meantime and is reported by itself
    fabric_.close(end, now_);
    report_closed(i, close->link, "closed");
  }
}

// In a turn of its own, so that no handler is called within another.
void ProtocolWorld::report_closed(HostId i, gossip::LinkId link, const std::string& reason) {
  at(now_, [this, i, link, reason, life = hosts_[i].life] {
    Host& host = hosts_[i];
    if (!host.up() || host.life != life) return;
    turn(i, i,
         [&](gossip::Outbox& out) { host.peer->on_link_down(link, reason, host.clock.read(now_), out); });
  });
}

void ProtocolWorld::cut(ConnectionId connection, const std::string& reason) {
  for (const int side : {0, 1}) {
    const End end{connection, side};
    if (fabric_.is_open(end)) report_closed(fabric_.host(end), link_of(end), reason);
  }
  fabric_.cut(connection);
}

void ProtocolWorld::dial(HostId i, const std::string& address) {
  const auto to = static_cast<HostId>(address.empty() ? hosts_.size() : std::strtoul(address.c_str() + 1, nullptr, 10));
  Event event{Event::Kind::dialled, {}, i, to, 0, hosts_[i].life};
  if (to >= hosts_.size() || hosts_[to].address != address) {
    const std::uint64_t life = event.life;
    return at(now_ + 20ms, [this, i, life, address] {
      Host& host = hosts_[i];
      if (!host.up() || host.life != life) return;
      turn(i, i, [&](gossip::Outbox& out) {
        host.peer->on_dial_failed(address, "no such host", host.clock.read(now_), out);
      });
    });
  }
  const bool hangs = hosts_[to].hangs || fabric_.blocked(i, to) || fabric_.blocked(to, i) ||
                     (options_.cannot_dial && options_.cannot_dial(i, to));
  event.value = hangs ? 1 : 0;
  queue_.push(now_ + (hangs ? dial_timeout : 4 * fabric_.latency(i, to)), event);
}

void ProtocolWorld::stranger_dials(HostId from, HostId to) {
  queue_.push(now_ + 4 * fabric_.latency(from, to),
              Event{Event::Kind::dialled, {}, from, to, 0, hosts_[from].life});
}

void ProtocolWorld::on_dialled(const Event& event) {
  Host& dialler = hosts_[event.host];
  Host& acceptor = hosts_[event.other];
  const bool alive = dialler.up() || dialler.stranger;
  if (!alive || dialler.life != event.life) return;
  if (dialler.busy_until > now_) return queue_.push(dialler.busy_until, event);
  const bool answers = acceptor.up() || acceptor.stranger;
  const bool hangs = event.value != 0 || acceptor.hangs || fabric_.blocked(event.host, event.other);
  trace(2, event.host);
  const bool refuses = acceptor.refuses || (options_.refuses && options_.refuses(event.host, event.other));
  if (hangs || !answers || refuses) {
    if (!dialler.up()) return;
    return turn(event.host, event.host, [&](gossip::Outbox& out) {
      dialler.peer->on_dial_failed(acceptor.address, hangs ? "timed out" : "connection refused",
                                       dialler.clock.read(now_), out);
    });
  }
  const ConnectionId connection = fabric_.open(event.host, event.other);
  for (const int side : {1, 0}) {
    const End end{connection, side};
    const HostId self = fabric_.host(end);
    Host& host = hosts_[self];
    const Host& peer = hosts_[fabric_.host({connection, 1 - side})];
    if (!fabric_.is_open(end)) continue;
    if (host.stranger) {
      host.stranger->on_link_up(end, peer.id);
    } else if (host.up()) {
      turn(self, self, [&](gossip::Outbox& out) {
        host.peer->on_link_up({link_of(end), peer.id, side == 0, peer.address}, host.clock.read(now_),
                                  out);
      });
    }
  }
}

}  // namespace rumor::sim
