#include "runtime/sim/swarm.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/sim/swarm_run.h"

namespace rumor::sim {

namespace {

constexpr Duration converge_within = 60s;  // after healing, besides what is on slow links
constexpr Duration quiet_warm_up = 6s, quiet_for = 6s, quiet_every = 400ms;
constexpr Duration settle_within = 20s, mesh_within = 120s, goodbye_within = 30s;
constexpr double quiet_copies_max = 1.05;
constexpr Duration quiet_delay_max = 2500ms;  // 99 of 100 deliveries; three hops of 150 ms and announcements
constexpr std::uint64_t quiet_deliveries_min = 50;
constexpr Duration dead_links_known = 16s;  // after healing: links that died unnoticed have been given up

}  // namespace

SwarmRun::SwarmRun(const SwarmRequest& request)
    : request_(request), plan_(draw_plan(request)), world_(plan_.world), checkers_(world_) {
  for (const FaultAction& action : plan_.actions) world_.at(action.at, [this, action] { act(action); });
}

std::vector<std::string> SwarmRun::contacts() const {
  std::vector<std::string> seeds;
  for (HostId i = 0; i < std::min<std::size_t>(plan_.nodes, 3); ++i)
    seeds.push_back(ProtocolWorld::address_of(i));
  return seeds;
}

void SwarmRun::after(Duration wait, std::function<void()> call) {
  world_.at(world_.now() + wait, [this, call = std::move(call)] {
    if (chaos_) call();
  });
}

// ---- warm-up ----

void SwarmRun::set_up() {
  for (HostId i = 0; i < plan_.nodes; ++i) {
    world_.host(i).seeds = contacts();
    world_.at(plan_.starts[i], [this, i] { start_again(i, DiskFault::none); });
    schedule_publishing(i, plan_.publish_every[i], chaos_end(), true);
    schedule_checkpoints(i);
  }
  if (plan_.attackers > 0) world_.at(TimePoint{plan_.warm_up}, [this] { schedule_attackers(); });
  world_.at(TimePoint{1s}, [this] { watch(); });
}

void SwarmRun::schedule_publishing(HostId i, Duration every, TimePoint until, bool waves) {
  if (every == Duration{0} || world_.now() + every > until) return;
  const std::int64_t span = every.count();
  const Duration wait(world_.chance().between(span / 2, span + span / 2));
  world_.at(world_.now() + wait, [this, i, every, until, waves] {
    const Duration wave = plan_.burst + plan_.silence;
    const bool silent = waves && wave > Duration{0} &&
                        Duration(world_.now().time_since_epoch().count() % wave.count()) > plan_.burst;
    if (!silent) world_.publish(i);
    schedule_publishing(i, every, until, waves);
  });
}

void SwarmRun::schedule_checkpoints(HostId i) {
  const std::int64_t span = plan_.checkpoint_every.count();
  after(Duration(world_.chance().between(span / 2, span + span / 2)), [this, i] {
    world_.save_checkpoint(i);
    schedule_checkpoints(i);
  });
}

void SwarmRun::schedule_attackers() {
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
  after(100ms, [this] { schedule_attackers(); });
}

// Once a virtual second: the weights of one host in full.
void SwarmRun::watch() {
  const auto i = static_cast<HostId>(world_.chance().below(plan_.nodes));
  if (world_.host(i).up()) checkers_.check_weights(i);
  after(2s, [this] { watch(); });
}

// ---- heal and verify ----

void SwarmRun::heal() {
  chaos_ = false;
  for (HostId i = 0; i < world_.hosts(); ++i) {
    Host& host = world_.host(i);
    host.handling = Duration{0};
    host.refuses = host.hangs = host.crash_armed = false;
    host.clock.run_at(1'000'000, world_.now());
    world_.clock_changed(i);
    world_.fabric().throttle(i, 1, world_.now());
    if (i >= plan_.nodes && (host.up() || host.stranger)) world_.kill(i, false);
    if (i < plan_.dead_for_good) {
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

// Who has what, for a liveness failure.
std::string SwarmRun::state_text() const {
  std::string text;
  for (HostId i = 0; i < plan_.nodes; ++i) {
    const Host& host = world_.host(i);
    if (!host.up()) continue;
    const auto peers = host.protocol->peers();
    std::string unequal;
    for (const gossip::PeerInfo& peer : peers) {
      if (peer.digest_equal && peer.finished) continue;
      for (HostId k = 0; k < plan_.nodes; ++k)
        if (world_.host(k).id == peer.node)
          unequal += str(" ", k, peer.digest_equal ? "=" : "!", peer.finished ? "" : "r");
    }
    text +=
        str("; ", i, ": ", host.store->have().count(), " updates, ", peers.size(), " links, ",
            host.protocol->settled() ? "settled" : "not with" + unequal, " ", host.protocol->waiting_for());
  }
  return text;
}

void SwarmRun::converge() {
  const TimePoint healed = world_.now();
  const gossip::HaveSet before = checkers_.held();
  // A minute, and the time that a slow link takes for everything.
  const std::uint64_t all = 2 * (checkers_.payload_bytes() + 4 * plan_.world.model.initial.size());
  const Duration within =
      converge_within +
      Duration(static_cast<std::int64_t>(all * 1'000'000 / plan_.world.fabric.bytes_per_second));
  const auto ready = [&] {
    for (HostId i = 0; i < plan_.nodes; ++i)
      if (world_.host(i).up() && !world_.host(i).protocol->ready_to_train()) return false;
    return checkers_.equal();
  };
  while (!world_.violation() && !ready()) {
    if (world_.now() - healed > within)
      return world_.violate(
          "L1", 0,
          str("replicas still differ ", fixed(to_seconds(within), 0), " s after healing", state_text()));
    world_.run_until(world_.now() + 100ms);
  }
  report_.converged_seconds = to_seconds(world_.now() - healed);
  if (!world_.violation()) checkers_.check_kept(before);
  if (!world_.violation()) checkers_.check_equal();
}

void SwarmRun::quiet_phase() {
  const Duration since_healing{static_cast<std::int64_t>(report_.converged_seconds * 1e6)};
  if (since_healing < dead_links_known) world_.run_until(world_.now() + dead_links_known - since_healing);
  // A third of what the links can carry at most.
  const std::uint64_t mean = checkers_.payload_bytes() / std::max<std::uint64_t>(checkers_.updates(), 1);
  const std::uint64_t all = 3 * plan_.nodes * (mean + 100) * 1'000'000 / plan_.world.fabric.bytes_per_second;
  const Duration every = std::max<Duration>(quiet_every, Duration(static_cast<std::int64_t>(all)));
  const TimePoint measured = world_.now() + std::max<Duration>(quiet_warm_up, 4 * every);
  const TimePoint end = measured + std::max<Duration>(quiet_for, 3 * every);
  for (HostId i = 0; i < plan_.nodes; ++i) schedule_publishing(i, every, end, false);
  world_.run_until(measured);
  checkers_.begin_flow();
  world_.run_until(end + quiet_delay_max + every);
  const Checkers::Flow flow = checkers_.end_flow();
  if (world_.violation() || flow.deliveries < quiet_deliveries_min) return;
  report_.copies = 1.0 + static_cast<double>(flow.duplicates) / static_cast<double>(flow.deliveries);
  const Duration p99 = flow.delays[flow.delays.size() * 99 / 100];
  report_.delay_p99 = to_seconds(p99);
  if (report_.copies > quiet_copies_max)
    return world_.violate("I9", 0, str(fixed(report_.copies, 3), " copies per delivery when all is well"));
  if (p99 > quiet_delay_max + every)
    return world_.violate(
        "I9", 0, str("1 % of deliveries take over ", fixed(report_.delay_p99, 2), " s when all is well"));
}

// Training has ended: all must agree that they are done, and hold the same.
void SwarmRun::settle() {
  const TimePoint finished = world_.now();
  for (HostId i = 0; i < plan_.nodes; ++i) world_.set_finished(i, true);
  const auto settled = [&] {
    for (HostId i = 0; i < plan_.nodes; ++i)
      if (world_.host(i).up() && !world_.host(i).protocol->settled()) return false;
    return checkers_.equal();
  };
  while (!world_.violation() && !settled()) {
    if (world_.now() - finished > settle_within)
      return world_.violate("L1", 0, "the nodes have finished and do not settle" + state_text());
    world_.run_until(world_.now() + 100ms);
  }
  if (world_.violation()) return;
  checkers_.check_equal();
  while (!checkers_.meshed() && world_.now() - finished < mesh_within) world_.run_until(world_.now() + 1s);
  checkers_.check_overlay();
  for (HostId i = 0; i < plan_.nodes && !world_.violation(); ++i)
    if (world_.host(i).up()) checkers_.check_weights(i);
}

void SwarmRun::say_goodbye() {
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

SwarmReport SwarmRun::run() {
  set_up();
  world_.run_until(chaos_end());
  if (!world_.violation()) heal();
  if (!world_.violation()) converge();
  if (!world_.violation()) quiet_phase();
  if (!world_.violation()) settle();
  if (!world_.violation()) say_goodbye();
  report_.violation = world_.violation();
  report_.replay = replay_line(request_);
  report_.nodes = plan_.nodes;
  report_.actions = plan_.actions.size();
  report_.enabled = plan_.enabled;
  report_.updates = checkers_.updates();
  report_.lost = checkers_.said_lost();
  report_.events = world_.events();
  report_.trace = world_.trace();
  report_.virtual_seconds = to_seconds(world_.now().time_since_epoch());
  report_.plan = str(plan_.nodes, " nodes, ", plan_.world.fabric.bytes_per_second / 1000, " kB/s, log ",
                     plan_.world.model.log_bytes, " bytes, ", plan_.actions.size(), " actions:");
  for (std::size_t k = 0; k < fault_kinds; ++k)
    if (plan_.enabled >> k & 1) report_.plan += str(" ", fault_name(static_cast<FaultKind>(k)));
  return report_;
}

SwarmReport run_swarm(const SwarmRequest& request, const SpyMaker& spy) {
  SwarmRun run(request);
  const auto watching = spy ? spy(run.world()) : nullptr;
  if (watching) run.world().observe(*watching);
  return run.run();
}

std::string replay_line(const SwarmRequest& request) {
  std::string line = str("rumor sim --protocol-only --faults swarm --sim-seed ", request.seed);
  if (request.nodes != 0) line += str(" --nodes ", request.nodes);
  for (std::size_t k = 0; k < fault_kinds; ++k)
    if ((request.allowed >> k & 1) == 0) line += str(" --without ", fault_name(static_cast<FaultKind>(k)));
  for (std::size_t a = 0; a < request.only.size(); ++a)
    line += str(a == 0 ? " --actions " : ",", request.only[a]);
  if (request.no_actions) line += " --actions none";
  if (request.chaos > Duration{0}) line += str(" --chaos-s ", fixed(to_seconds(request.chaos), 3));
  return line;
}

}  // namespace rumor::sim
