#include "runtime/sim/storm/storm.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/sim/storm/storm_run.h"

namespace rumor::sim {

namespace {

constexpr Duration converge_within = 60s;  // after healing, besides what is on slow links
constexpr Duration quiet_warm_up = 6s, quiet_for = 6s, quiet_every = 400ms;
constexpr Duration agree_within = 20s;
constexpr double quiet_copies_max = 1.05;
constexpr Duration quiet_delay_max = 2500ms;  // 99 of 100 deliveries; three hops of 150 ms and announcements
constexpr std::uint64_t quiet_deliveries_min = 50;
constexpr Duration dead_links_known = 16s;  // after healing: links that died unnoticed have been given up

}  // namespace

StormRun::StormRun(const StormRequest& request) : FaultyRun(request, draw_plan(request)) {}

// ---- warm-up ----

void StormRun::schedule_work(HostId i) {
  schedule_publishing(i, plan_.publish_every[i], chaos_end(), true);
  schedule_checkpoints(i);
}

void StormRun::schedule_publishing(HostId i, Duration every, TimePoint until, bool waves) {
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

void StormRun::schedule_checkpoints(HostId i) {
  const std::int64_t span = plan_.checkpoint_every.count();
  after(Duration(world_.chance().between(span / 2, span + span / 2)), [this, i] {
    world_.save_checkpoint(i);
    schedule_checkpoints(i);
  });
}

// ---- heal and verify ----

void StormRun::converge() {
  const TimePoint healed = world_.now();
  const gossip::HaveSet before = checkers_.held();
  const Duration within = converge_within + carrying_time();
  const auto ready = [&] {
    for (HostId i = 0; i < plan_.nodes; ++i)
      if (world_.host(i).up() && !world_.host(i).peer->protocol().ready_to_train()) return false;
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

void StormRun::quiet_phase() {
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
void StormRun::await_agreement() {
  const TimePoint finished = world_.now();
  for (HostId i = 0; i < plan_.nodes; ++i) world_.set_finished(i, true);
  const auto agreed = [&] {
    for (HostId i = 0; i < plan_.nodes; ++i)
      if (world_.host(i).up() && !world_.host(i).peer->protocol().converged()) return false;
    return checkers_.equal();
  };
  while (!world_.violation() && !agreed()) {
    if (world_.now() - finished > agree_within)
      return world_.violate("L1", 0, "the nodes have finished and do not agree" + state_text());
    world_.run_until(world_.now() + 100ms);
  }
  if (world_.violation()) return;
  checkers_.check_equal();
  await_mesh();
  for (HostId i = 0; i < plan_.nodes && !world_.violation(); ++i)
    if (world_.host(i).up()) checkers_.check_weights(i);
}

StormReport StormRun::run() {
  start_hosts();
  world_.run_until(chaos_end());
  if (!world_.violation()) heal();
  if (!world_.violation()) converge();
  if (!world_.violation()) quiet_phase();
  if (!world_.violation()) await_agreement();
  if (!world_.violation()) say_goodbye();
  fill(report_);
  return report_;
}

StormReport run_storm(const StormRequest& request, const SpyMaker& spy) {
  StormRun run(request);
  const auto watching = spy ? spy(run.world()) : nullptr;
  if (watching) run.world().observe(*watching);
  return run.run();
}

std::string replay_line(const StormRequest& request, const std::string& command) {
  std::string line = str(command, " --faults storm --sim-seed ", request.seed);
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
