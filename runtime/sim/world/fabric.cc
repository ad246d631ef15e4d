#include "runtime/sim/world/fabric.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::sim {

Fabric::Fabric(FabricOptions options, Schedule schedule, Backlog backlog)
    : options_(options),
      schedule_(std::move(schedule)),
      backlog_(std::move(backlog)),
      prng_(Prng::named(options.seed, "fabric")),
      of_host_(options.hosts),
      uplinks_(options.hosts),
      down_free_(options.hosts),
      throttle_(options.hosts, 1),
      blocked_(options.hosts * options.hosts, 0),
      sent_bytes_(options.hosts) {}

ConnectionId Fabric::open(HostId dialler, HostId acceptor) {
  const auto id = static_cast<ConnectionId>(connections_.size());
  connections_.push_back({{dialler, acceptor}, {true, true}});
  directions_.resize(2 * connections_.size());
  of_host_[dialler].push_back(id);
  if (acceptor != dialler) of_host_[acceptor].push_back(id);
  return id;
}

Duration Fabric::latency(HostId a, HostId b) const {
  const std::uint64_t low = std::min(a, b), high = std::max(a, b);
  const auto span = static_cast<std::uint64_t>((options_.latency_max - options_.latency_min).count()) + 1;
  return options_.latency_min +
         Duration(static_cast<std::int64_t>(mix64(options_.seed ^ mix64(low << 32 | high)) % span));
}

Duration Fabric::cost(HostId host, std::size_t bytes, bool down) const {
  const std::uint64_t full =
      down && options_.down_bytes_per_second != 0 ? options_.down_bytes_per_second : options_.bytes_per_second;
  const std::uint64_t rate = std::max<std::uint64_t>(full / throttle_[host], 1);
  return Duration(static_cast<std::int64_t>((bytes * 1'000'000 + rate - 1) / rate));
}

// ---- sending ----

void Fabric::send(End end, Bytes frame, bool control, TimePoint now) {
  if (!is_open(end)) return;
  Flight flight;
  flight.frame = std::move(frame);
  flight.control = control;
  push({end.connection, 1 - end.side}, std::move(flight), now);
}

void Fabric::push(End towards, Flight flight, TimePoint now) {
  Direction& direction = directions_[index(towards)];
  const HostId from = host({towards.connection, 1 - towards.side}), to = host(towards);
  const std::size_t bytes = flight.frame.size() + framing_bytes;
  sent_bytes_[from] += bytes;
  if (direction.swallows || direction.ended) return;
  flight.order = direction.sent++;
  if (flight.closes) direction.ended = true;
  Uplink& uplink = uplinks_[from];
  if (!flight.control) {
    direction.leaving_bytes += bytes;
    direction.lanes[1].push_back(std::move(flight));
    uplink.queue.push_back({towards, bytes});
    if (!uplink.busy) serve(from, now);
    return watch_backlog(towards);
  }
  // Control goes before data that has not begun to leave; the uplink is busy for it all the same.
  const Duration own = cost(from, bytes);
  pay_off(uplink, now);
  uplink.owed += own;
  const Duration wait =
      uplink.busy ? cost(from, std::min(uplink.queue.front().bytes, limits::piece_bytes_max)) / 2 : Duration{0};
  const Duration jitter(prng_.between(0, options_.jitter.count()));
  direction.reach[0] = std::max(now + wait + own + latency(from, to) + jitter, direction.reach[0]);
  direction.lanes[0].push_back(std::move(flight));
  schedule(direction.reach[0], options_.shared_downlink ? FabricEvent::Kind::reach : FabricEvent::Kind::deliver,
           towards, 0, bytes);
}

void Fabric::pay_off(Uplink& uplink, TimePoint now) {
  if (!uplink.busy) uplink.owed -= std::min(uplink.owed, Duration(now - uplink.paid_until));
  uplink.paid_until = now;
}

void Fabric::serve(HostId from, TimePoint now) {
  Uplink& uplink = uplinks_[from];
  pay_off(uplink, now);
  uplink.busy = true;
  const Duration takes = cost(from, uplink.queue.front().bytes) + std::exchange(uplink.owed, Duration{0});
  schedule_(now + takes, {FabricEvent::Kind::left, 0, 1, from});
}

void Fabric::left(HostId from, TimePoint now) {
  Uplink& uplink = uplinks_[from];
  const Waiting gone = uplink.queue.front();
  uplink.queue.pop_front();
  pay_off(uplink, now);
  uplink.busy = false;
  if (!uplink.queue.empty()) serve(from, now);
  Direction& direction = directions_[index(gone.towards)];
  direction.leaving_bytes -= gone.bytes;
  const Duration jitter(prng_.between(0, options_.jitter.count()));
  direction.reach[1] = std::max(now + latency(from, host(gone.towards)) + jitter, direction.reach[1]);
  schedule(direction.reach[1], FabricEvent::Kind::reach, gone.towards, 1, gone.bytes);
  watch_backlog(gone.towards);
}

std::size_t Fabric::unsent(End from) const {
  const Direction& direction = directions_[index({from.connection, 1 - from.side})];
  return direction.leaving_bytes + direction.parked_bytes;
}

// Tells the sender when it crosses one of the marks.
void Fabric::watch_backlog(End towards) {
  const End from{towards.connection, 1 - towards.side};
  Direction& direction = directions_[index(towards)];
  if (!is_open(from)) return;
  const std::size_t bytes = unsent(from);
  const bool full = direction.backlogged ? bytes >= options_.backlog_low : bytes >= options_.backlog_high;
  if (full == direction.backlogged) return;
  direction.backlogged = full;
  backlog_(from, full);
}

// ---- ends ----

void Fabric::close(End end, TimePoint now) {
  if (!is_open(end)) return;
  Flight last;
  last.closes = true;
  push({end.connection, 1 - end.side}, std::move(last), now);
  forget(end);
}

// Nothing arrives at a closed end.
void Fabric::forget(End end) {
  connections_[end.connection].open[end.side] = false;
  Direction& towards = directions_[index(end)];
  towards.ended = true;
  for (auto& lane : towards.lanes) lane.clear();
  towards.parked[0] = towards.parked[1] = 0;
  towards.parked_bytes = 0;
  if (!connections_[end.connection].open[1 - end.side] || host(end) == host({end.connection, 1 - end.side}))
    for (const int side : {0, 1}) std::erase(of_host_[host({end.connection, side})], end.connection);
}

void Fabric::reset(ConnectionId connection, TimePoint now) {
  for (const int side : {0, 1}) {
    const End towards{connection, side};
    Direction& direction = directions_[index(towards)];
    if (!is_open(towards)) continue;
    // A part of what is on its way is lost: the later part, in each lane.
    for (auto& lane : direction.lanes) {
      lane.resize(direction.swallows ? 0 : prng_.below(lane.size() + 1));
      for (std::size_t i = 0; i < lane.size(); ++i)  // once more is harmless
        schedule(now + latency(host(towards), host({connection, 1 - side})), FabricEvent::Kind::deliver,
                 towards, 1);
    }
    direction.swallows = direction.stalled = direction.ended = false;
    Flight last;
    last.closes = true;
    push(towards, std::move(last), now);
  }
}

void Fabric::cut(ConnectionId connection) {
  for (const int side : {0, 1})
    if (is_open({connection, side})) forget({connection, side});
}

void Fabric::drop_host(HostId gone, bool silently, TimePoint now) {
  const std::vector<ConnectionId> mine = of_host_[gone];
  for (const ConnectionId connection : mine) {
    for (const int side : {0, 1}) {
      const End end{connection, side};
      if (host(end) != gone || !is_open(end)) continue;
      if (silently) {
        swallow({connection, 1 - side});
        forget(end);
      } else {
        close(end, now);
      }
    }
  }
}

// ---- arriving ----

bool Fabric::held(End towards) const {
  return directions_[index(towards)].stalled ||
         blocked(host({towards.connection, 1 - towards.side}), host(towards));
}

// True when the event has to wait for the end of a stall or block. Events wait, not flights: the flight that was due
// first may be data that let control go before.
bool Fabric::park(End at, std::uint8_t lane) {
  if (!held(at)) return false;
  Direction& direction = directions_[index(at)];
  const std::size_t flights = direction.lanes[0].size() + direction.lanes[1].size();
  if (flights <= std::size_t{direction.parked[0]} + direction.parked[1]) return true;
  const auto& data = direction.lanes[1];
  if (lane == 1 && data.size() > direction.parked[1])
    direction.parked_bytes += data[direction.parked[1]].frame.size() + framing_bytes;
  ++direction.parked[lane];
  if (lane == 1) watch_backlog(at);
  return true;
}

void Fabric::reached(const FabricEvent& event, TimePoint now) {
  const End at{event.connection, event.side};
  if (park(at, event.lane)) return;
  auto& lane = directions_[index(at)].lanes[event.lane];
  if (lane.empty()) return schedule(now, FabricEvent::Kind::deliver, at, 1);
  const HostId to = host(at);
  const std::size_t bytes = event.bytes != 0 ? event.bytes : lane.back().frame.size() + framing_bytes;
  down_free_[to] = std::max(now, down_free_[to]) + cost(to, bytes, true);
  schedule(down_free_[to], FabricEvent::Kind::deliver, at, event.lane);
}

bool Fabric::event(const FabricEvent& event, TimePoint now) {
  if (event.kind == FabricEvent::Kind::left) {
    left(event.connection, now);
    return false;
  }
  const End at{event.connection, event.side};
  if (!is_open(at) || directions_[index(at)].swallows) return false;
  if (event.kind == FabricEvent::Kind::reach) {
    reached(event, now);
    return false;
  }
  return event.lane == 1 || !park(at, 0);
}

std::optional<Arrival> Fabric::take(const FabricEvent& event) {
  const End at{event.connection, event.side};
  if (!is_open(at)) return std::nullopt;
  Direction& direction = directions_[index(at)];
  auto& control = direction.lanes[0];
  auto& data = direction.lanes[1];
  if (control.empty() && data.empty()) return std::nullopt;
  // Data never overtakes control.
  const bool first =
      data.empty() || (!control.empty() && (event.lane == 0 || control.front().order < data.front().order));
  auto& lane = first ? control : data;
  Flight flight = std::move(lane.front());
  lane.pop_front();
  if (flight.closes) forget(at);
  return Arrival{at, flight.closes, flight.control, std::move(flight.frame)};
}

// ---- faults ----

void Fabric::release(End towards, TimePoint now) {
  if (held(towards)) return;
  Direction& direction = directions_[index(towards)];
  for (; direction.parked[0] > 0; --direction.parked[0])
    schedule(now, FabricEvent::Kind::deliver, towards, 0);
  for (; direction.parked[1] > 0; --direction.parked[1]) schedule(now, FabricEvent::Kind::reach, towards, 1);
  direction.parked_bytes = 0;
  watch_backlog(towards);
}

void Fabric::stall(End towards, bool on, TimePoint now) {
  directions_[index(towards)].stalled = on;
  if (!on) release(towards, now);
}

void Fabric::throttle(HostId host_id, std::uint32_t divisor, TimePoint now) {
  const bool faster = divisor < throttle_[host_id];
  Uplink& uplink = uplinks_[host_id];
  pay_off(uplink, now);
  uplink.owed = uplink.owed / throttle_[host_id] * divisor;
  throttle_[host_id] = divisor;
  if (!faster || down_free_[host_id] <= now) return;
  // Frames that wait for the slow downlink arrive at its new speed.
  down_free_[host_id] = now;
  for (const ConnectionId connection : of_host_[host_id]) {
    for (const int side : {0, 1}) {
      const End at{connection, side};
      if (host(at) != host_id || held(at)) continue;
      for (const Flight& flight : directions_[index(at)].lanes[1]) {
        down_free_[host_id] += cost(host_id, flight.frame.size() + framing_bytes, true);
        schedule(down_free_[host_id], FabricEvent::Kind::deliver, at, 1);
      }
    }
  }
}

void Fabric::block(HostId from, HostId to, bool on, TimePoint now) {
  blocked_[from * options_.hosts + to] = on ? 1 : 0;
  if (on) return;
  const std::vector<ConnectionId> mine = of_host_[to];
  for (const ConnectionId connection : mine)
    for (const int side : {0, 1})
      if (host({connection, side}) == to && host({connection, 1 - side}) == from)
        release({connection, side}, now);
}

void Fabric::unblock_all(TimePoint now) {
  for (HostId from = 0; from < options_.hosts; ++from)
    for (HostId to = 0; to < options_.hosts; ++to)
      if (blocked(from, to)) block(from, to, false, now);
}

std::optional<ConnectionId> Fabric::some_connection(HostId host, Prng& prng) const {
  const auto& mine = of_host_[host];
  if (mine.empty()) return std::nullopt;
  return mine[prng.below(mine.size())];
}

}  // namespace rumor::sim
