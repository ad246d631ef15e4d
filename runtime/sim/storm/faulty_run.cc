#include "runtime/sim/storm/faulty_run.h"

#include <algorithm>
#include <set>

#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

constexpr Duration mesh_within = 120s, goodbye_within = 30s;

}  // namespace

FaultyRun::FaultyRun(const StormRequest& request, StormPlan plan)
    : request_(request), plan_(std::move(plan)), world_(plan_.world), checkers_(world_, plan_.runs) {
  for (const FaultAction& action : plan_.actions) world_.at(action.at, [this, action] { act(action); });
}

std::vector<std::string> FaultyRun::contacts() const {
  std::vector<std::string> seeds;
  for (HostId i = 0; i < std::min<std::size_t>(plan_.nodes, 3); ++i)
    seeds.push_back(ProtocolWorld::address_of(i));
  return seeds;
}

void FaultyRun::after(Duration wait, std::function<void()> call) {
  world_.at(world_.now() + wait, [this, call = std::move(call)] {
    if (chaos_) call();
  });
}

// ---- warm-up ----

void FaultyRun::start_hosts() {
  for (HostId i = 0; i < plan_.nodes; ++i) {
    world_.host(i).seeds = contacts();
    world_.at(plan_.starts[i], [this, i] { start_again(i, DiskFault::none); });
    schedule_work(i);
  }
  if (plan_.attackers > 0) world_.at(TimePoint{plan_.warm_up}, [this] { start_attackers(); });
  world_.at(TimePoint{1s}, [this] { watch_weights(); });
}

void FaultyRun::start_attackers() {
  const AttackKinds kinds{(plan_.enabled & fault_bit(FaultKind::random_bytes)) != 0,
                          (plan_.enabled & fault_bit(FaultKind::flipped_bits)) != 0,
                          (plan_.enabled & fault_bit(FaultKind::false_have)) != 0,
                          (plan_.enabled & fault_bit(FaultKind::withholds)) != 0,
                          (plan_.enabled & fault_bit(FaultKind::floods)) != 0};
  for (std::size_t a = 0; a < plan_.attackers; ++a) {
    const auto i = static_cast<HostId>(plan_.attackers_from + a);
    Host& host = world_.host(i);
    if (!host.stranger)
      host.stranger =
          std::make_unique<Attacker>(world_, i, static_cast<HostId>(plan_.nodes), kinds, request_.seed);
    host.stranger->on_turn();
  }
  after(100ms, [this] { start_attackers(); });
}

void FaultyRun::watch_weights() {
  const auto i = static_cast<HostId>(world_.chance().below(plan_.nodes));
  if (world_.host(i).up()) checkers_.check_weights(i);
  after(2s, [this] { watch_weights(); });
}

// ---- heal and verify ----

// Whether the peers that stay find each other without the seeds: they do when acquaintances connect all of them. Two
// peers are acquainted when each has the address of the other; one alone may think that the other has left.
bool FaultyRun::find_each_other_without_the_dead() const {
  const auto first = static_cast<HostId>(plan_.dead_for_good);
  std::vector<std::set<std::string>> known(plan_.nodes);
  for (HostId i = first; i < plan_.nodes; ++i) {
    const Host& host = world_.host(i);
    known[i] = {host.known.begin(), host.known.end()};
    if (!host.up()) continue;
    known[i].clear();
    for (const gossip::KnownAddress& one : host.peer->protocol().known_addresses()) known[i].insert(one.address);
  }
  std::set<HostId> found{first};
  std::vector<HostId> next{first};
  while (!next.empty()) {
    const HostId i = next.back();
    next.pop_back();
    for (HostId k = first; k < plan_.nodes; ++k) {
      const bool acquainted =
          known[i].contains(ProtocolWorld::address_of(k)) && known[k].contains(ProtocolWorld::address_of(i));
      if (acquainted && found.insert(k).second) next.push_back(k);
    }
  }
  return found.size() == plan_.nodes - plan_.dead_for_good;
}

void FaultyRun::heal() {
  end_superseded();
  chaos_ = false;
  // A peer that knows no living address can link to no one: then the last seed stays.
  const std::size_t seeds = contacts().size();
  const bool needs_a_seed = plan_.dead_for_good >= seeds && !find_each_other_without_the_dead();
  for (HostId i = 0; i < world_.hosts(); ++i) {
    Host& host = world_.host(i);
    host.handling = Duration{0};
    host.refuses = host.hangs = host.crash_armed = host.files.full = false;
    host.clock.run_at(1'000'000, world_.now());
    world_.clock_changed(i);
    world_.fabric().throttle(i, 1, world_.now());
    if (i >= plan_.nodes && (host.up() || host.stranger)) world_.kill(i, false);
    if (i < plan_.dead_for_good && !(needs_a_seed && i + 1 == seeds)) {
      host.dead_for_good = true;
      if (host.up()) world_.kill(i, false);
    }
  }
  world_.fabric().unblock_all(world_.now());
  for (ConnectionId c = 0; c < world_.fabric().connections(); ++c)
    for (const int side : {0, 1}) world_.fabric().stall({c, side}, false, world_.now());
  for (HostId i = 0; i < plan_.nodes; ++i)
    if (!world_.host(i).up()) start_again(i, DiskFault::none);
}

std::string FaultyRun::state_text() const {
  std::string text;
  for (HostId i = 0; i < plan_.nodes; ++i) {
    const Host& host = world_.host(i);
    if (!host.up()) continue;
    const auto peers = host.peer->protocol().peers();
    std::string unequal;
    for (const gossip::PeerInfo& peer : peers) {
      if (peer.digest_equal && peer.finished) continue;
      for (HostId k = 0; k < plan_.nodes; ++k)
        if (world_.host(k).id == peer.node)
          unequal += str(" ", k, peer.digest_equal ? "=" : "!", peer.finished ? "" : "r");
    }
    text += str("; ", i, ": ", host.peer->have().count(), " updates, ", peers.size(), " links, ",
                host.peer->protocol().converged() ? "converged" : "not with" + unequal, " ",
                host.peer->protocol().waiting_for());
  }
  return text;
}

Duration FaultyRun::carrying_time() const {
  const std::uint64_t all = 2 * (checkers_.payload_bytes() + 4 * plan_.world.model.initial.size());
  return Duration(static_cast<std::int64_t>(all * 1'000'000 / plan_.world.fabric.bytes_per_second));
}

void FaultyRun::await_mesh() {
  const TimePoint began = world_.now();
  while (!checkers_.meshed() && world_.now() - began < mesh_within) world_.run_until(world_.now() + 1s);
  checkers_.check_overlay();
}

void FaultyRun::say_goodbye() {
  for (HostId i = 0; i < plan_.nodes; ++i) {
    if (!world_.host(i).up()) continue;
    world_.leave(i);
    world_.run_until(world_.now() + 50ms);
  }
  world_.run_until(world_.now() + goodbye_within);
  for (ConnectionId c = 0; c < world_.fabric().connections(); ++c)
    for (const int side : {0, 1})
      if (world_.fabric().is_open({c, side}))
        return world_.violate("I12", world_.fabric().host({c, side}), "a connection is open after goodbye");
}

void FaultyRun::fill(StormReport& report) const {
  report.violation = world_.violation();
  report.replay = replay_line(request_);
  report.nodes = plan_.nodes;
  report.actions = plan_.actions.size();
  report.enabled = plan_.enabled;
  report.updates = checkers_.updates();
  report.lost = checkers_.said_lost();
  report.events = world_.events();
  report.trace = world_.trace();
  report.virtual_seconds = to_seconds(world_.now().time_since_epoch());
  report.plan = str(plan_.nodes, " nodes, ", plan_.world.fabric.bytes_per_second / 1000, " kB/s, log ",
                    plan_.world.model.log_bytes, " bytes, ", plan_.actions.size(), " actions:");
  for (std::size_t k = 0; k < fault_kinds; ++k)
    if (plan_.enabled >> k & 1) report.plan += str(" ", fault_name(static_cast<FaultKind>(k)));
}

}  // namespace rumor::sim
