// Faults: how each kind strikes.
#include <algorithm>

#include "runtime/sim/storm/faulty_run.h"

namespace rumor::sim {

void FaultyRun::act(const FaultAction& action) {
  if (!chaos_) return;
  ++strikes_.actions;
  const HostId i = action.host;
  switch (action.kind) {
    case FaultKind::crash:
      return stop_for(i, action, false);
    case FaultKind::power_off:
      return stop_for(i, action, true);
    case FaultKind::crash_in_effects:
      if (!world_.host(i).up()) return;
      world_.host(i).crash_armed = true;
      return after(action.lasts, [this, i, action] { start_again(i, action.disk); });
    case FaultKind::leave:
      world_.leave(i);
      return after(action.lasts, [this, i, action] { start_again(i, action.disk); });
    case FaultKind::clone:
      return clone(action);
    case FaultKind::join_storm:
      return join_storm(action);
    case FaultKind::halves:
    case FaultKind::one_apart:
    case FaultKind::ring:
    case FaultKind::bridge:
    case FaultKind::one_way:
      return partition(action);
    case FaultKind::clock_jump:
    case FaultKind::clock_drift:
    case FaultKind::clock_stop:
      return upset_clock(action);
    case FaultKind::reset:
    case FaultKind::stall:
    case FaultKind::half_open:
      return upset_connection(action);
    default:
      return upset_host(action);
  }
}

void FaultyRun::stop_for(HostId i, const FaultAction& action, bool silently) {
  if (!world_.host(i).up()) return;
  world_.kill(i, silently);
  after(action.lasts, [this, i, action] { start_again(i, action.disk); });
}

void FaultyRun::start_again(HostId i, DiskFault fault) {
  world_.host(i).crash_armed = false;
  if (world_.host(i).up() || world_.host(i).dead_for_good) return;
  if (world_.host(i).life > 0) ++strikes_.restarts;
  world_.start(i, fault);
}

// The same key, and the disk as it is at this moment, at another address.
void FaultyRun::clone(const FaultAction& action) {
  Host& copy = world_.host(plan_.clone);
  const Host& original = world_.host(action.host);
  if (copy.up() || !original.up()) return;
  copy.id = original.id;
  copy.seeds = contacts();
  copy.disk = original.disk;
  if (auto newest = original.peer->checkpoint()) copy.disk.push_back(std::move(*newest));
  copy.known.clear();
  copy.files = original.files;
  world_.start(plan_.clone);
  schedule_publishing(plan_.clone, 700ms, chaos_end(), false);
  after(100ms, [this] { watch_clone(); });
  after(action.lasts, [this] {
    if (world_.host(plan_.clone).up()) world_.kill(plan_.clone, false);
  });
}

void FaultyRun::watch_clone() {
  end_superseded();
  if (world_.host(plan_.clone).up()) after(100ms, [this] { watch_clone(); });
}

void FaultyRun::end_superseded() {
  for (HostId i = 0; i <= plan_.clone; ++i) {
    const Host& host = world_.host(i);
    if (!host.up() || host.peer->failure().empty() || host.peer->protocol().superseded().empty()) continue;
    world_.kill(i, false);
    if (i != plan_.clone) after(3s, [this, i] { start_again(i, DiskFault::none); });
  }
}

void FaultyRun::join_storm(const FaultAction& action) {
  Prng prng(action.value);
  for (HostId i = 1; i < plan_.nodes; ++i) {
    if (!prng.chance(1, 2)) continue;
    if (world_.host(i).up()) world_.kill(i, prng.chance(1, 2));
    const Duration wait = plan_.paced(3s + Duration(prng.between(0, 2'000'000)));
    after(wait, [this, i, action] { start_again(i, action.disk); });
  }
}

void FaultyRun::partition(const FaultAction& action) {
  Prng prng(action.value);
  const std::size_t n = plan_.nodes;
  std::vector<std::uint8_t> side(n);
  for (auto& one : side) one = static_cast<std::uint8_t>(prng.below(2));
  const auto cut = [&](HostId a, HostId b) {
    switch (action.kind) {
      case FaultKind::halves:
        return side[a] != side[b];
      case FaultKind::one_apart:
        return (a == action.host) != (b == action.host);
      case FaultKind::ring:
        return (a + 1) % n != b && (b + 1) % n != a;
      case FaultKind::bridge:
        return side[a] != side[b] && a != action.host && b != action.host;
      default:
        return a == action.host && b == action.other;
    }
  };
  ++strikes_.partitions;
  const std::uint64_t number = ++partitions_;
  for (HostId a = 0; a < n; ++a)
    for (HostId b = 0; b < n; ++b)
      if (a != b) world_.fabric().block(a, b, cut(a, b), world_.now());
  // Some partitions reset connections at once, others show only as silence.
  if (prng.chance(1, 3)) {
    for (HostId a = 0; a < n; ++a) {
      const std::size_t connections = world_.fabric().connections();
      for (ConnectionId c = 0; c < connections; ++c) {
        const End end{c, 0};
        if (world_.fabric().host(end) != a || !world_.fabric().is_open(end)) continue;
        const HostId b = world_.fabric().host({c, 1});
        if (b < n && world_.fabric().blocked(a, b)) world_.fabric().reset(c, world_.now());
      }
    }
  }
  after(action.lasts * (prng.chance(1, 2) ? 1 : 4), [this, number] {
    if (number == partitions_) world_.fabric().unblock_all(world_.now());
  });
}

void FaultyRun::upset_clock(const FaultAction& action) {
  Prng prng(action.value);
  const HostId i = action.host;
  LocalClock& clock = world_.host(i).clock;
  const TimePoint now = world_.now();
  if (action.kind == FaultKind::clock_jump) {
    // Forward only: a machine that slept. The daemon reads a steady clock, which never goes back.
    clock.jump(Duration(prng.between(0, prng.chance(1, 2) ? 3'600'000'000 : 10'000'000)), now);
    return world_.clock_changed(i);
  }
  const std::int64_t rate = action.kind == FaultKind::clock_stop ? 0 : prng.between(900'000, 1'100'000);
  clock.run_at(rate, now);
  world_.clock_changed(i);
  after(action.lasts, [this, i] {
    world_.host(i).clock.run_at(1'000'000, world_.now());
    world_.clock_changed(i);
  });
}

void FaultyRun::upset_connection(const FaultAction& action) {
  Prng prng(action.value);
  const auto connection = world_.fabric().some_connection(action.host, prng);
  if (!connection) return;
  if (action.kind == FaultKind::reset) {
    ++strikes_.resets;
    return world_.fabric().reset(*connection, world_.now());
  }
  const int side = static_cast<int>(prng.below(2));
  const bool both = prng.chance(1, 2);
  if (action.kind == FaultKind::half_open) {
    world_.fabric().swallow({*connection, side});
    if (both) world_.fabric().swallow({*connection, 1 - side});
    return;
  }
  world_.fabric().stall({*connection, side}, true, world_.now());
  if (both) world_.fabric().stall({*connection, 1 - side}, true, world_.now());
  after(action.lasts, [this, c = *connection] {
    for (const int end : {0, 1}) world_.fabric().stall({c, end}, false, world_.now());
  });
}

void FaultyRun::upset_host(const FaultAction& action) {
  Prng prng(action.value);
  const HostId i = action.host;
  Host& host = world_.host(i);
  switch (action.kind) {
    case FaultKind::pause:
      host.busy_until = std::max(host.busy_until, std::min(world_.now() + action.lasts, chaos_end()));
      return;
    case FaultKind::slow_processor:
      host.handling = Duration(prng.between(200, 20'000));
      break;
    case FaultKind::throttle:
      world_.fabric().throttle(i, 20, world_.now());
      break;
    case FaultKind::refuse:
      host.refuses = true;
      break;
    case FaultKind::hang:
      host.hangs = true;
      break;
    case FaultKind::disk_full:
      host.files.full = true;
      break;
    default:
      return;
  }
  after(action.lasts, [this, i] {
    Host& calm = world_.host(i);
    calm.handling = Duration{0};
    calm.refuses = calm.hangs = calm.files.full = false;
    world_.fabric().throttle(i, 1, world_.now());
  });
}

}  // namespace rumor::sim
