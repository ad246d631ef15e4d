#include "runtime/sim/storm/fault_script.h"

#include <algorithm>
#include <iterator>

#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

constexpr std::string_view kind_names[] = {"crash",        "crash-in-effects",
                                           "power-off",    "clone",
                                           "pause",        "slow-processor",
                                           "clock-jump",   "clock-drift",
                                           "clock-stop",   "halves",
                                           "one-apart",    "ring",
                                           "bridge",       "one-way",
                                           "reset",        "stall",
                                           "half-open",    "throttle",
                                           "refuse",       "hang",
                                           "join-storm",   "leave",
                                           "disk-lost",    "disk-stale",
                                           "disk-torn",    "disk-flipped",
                                           "disk-foreign", "random-bytes",
                                           "flipped-bits", "false-have",
                                           "withholds",    "floods",
                                           "disk-full"};
static_assert(std::size(kind_names) == fault_kinds);

constexpr FaultSet attacks = fault_bit(FaultKind::random_bytes) | fault_bit(FaultKind::flipped_bits) |
                             fault_bit(FaultKind::false_have) | fault_bit(FaultKind::withholds) |
                             fault_bit(FaultKind::floods);

Duration between(Prng& prng, Duration low, Duration high) {
  return Duration(prng.between(low.count(), high.count()));
}

DiskFault draw_disk(Prng& prng, FaultSet enabled) {
  static constexpr DiskFault faults[] = {DiskFault::lost, DiskFault::stale, DiskFault::torn,
                                         DiskFault::flipped, DiskFault::foreign};
  const std::uint64_t which = prng.below(std::size(faults));
  const auto bit = fault_bit(FaultKind::disk_lost) << which;
  return (enabled & bit) != 0 && prng.chance(2, 3) ? faults[which] : DiskFault::none;
}

// An action of this kind, with whatever it may need.
FaultAction draw_action(Prng prng, FaultKind kind, const StormPlan& plan) {
  FaultAction action;
  action.kind = kind;
  action.at = TimePoint{plan.warm_up} + between(prng, 0s, plan.chaos);
  action.host = static_cast<HostId>(prng.below(plan.nodes));
  action.other = static_cast<HostId>(prng.below(plan.nodes));
  action.value = prng.next();
  const bool longer = prng.chance(1, 6);
  action.lasts = plan.paced(between(prng, 100ms, longer ? 90s : 12s));
  action.disk = draw_disk(prng, plan.enabled);
  return action;
}

void draw_network(StormPlan& plan, Prng prng) {
  FabricOptions& fabric = plan.world.fabric;
  fabric.latency_min = between(prng, 200us, 20ms);
  fabric.latency_max = fabric.latency_min + between(prng, 1ms, 130ms);
  fabric.jitter = between(prng, 0us, 5ms);
  fabric.bytes_per_second = 100'000u << prng.below(8);
  if (prng.chance(1, 2)) {
    fabric.backlog_high = 2'000u << prng.below(6);
    fabric.backlog_low = fabric.backlog_high / 4;
  }
}

// Bounds the entries that all nodes apply in a second, and so the cost of a seed. Without the bound, three seeds in
// five hundred, with many nodes and large updates, took up to sixty times the mean.
void bound_entries(StormPlan& plan) {
  constexpr double applied_max = 400'000;
  double updates = 0;  // a second, of all nodes
  for (const Duration every : plan.publish_every)
    if (every > 0s) updates += 1 / to_seconds(every);
  const double most = std::max(applied_max / (updates * static_cast<double>(plan.nodes)), 1.0);
  std::uint32_t& entries = plan.world.model.entries_max;
  if (static_cast<double>(entries) > most) entries = static_cast<std::uint32_t>(most);
}

void draw_workload(StormPlan& plan, Prng prng) {
  const std::uint64_t shape = prng.below(4);
  // A node's updates in the whole run are bounded, too.
  const Duration least = std::max<Duration>(100ms, plan.chaos / 250);
  const std::uint64_t only = prng.below(plan.nodes);
  for (std::size_t i = 0; i < plan.nodes; ++i) {
    const Duration every = between(prng, least, least * 12);
    plan.publish_every.push_back(shape == 0 && i != only ? 0s : every);
  }
  if (shape == 1) {
    plan.burst = between(prng, 500ms, 10s);
    plan.silence = between(prng, 1s, 30s);
  }
  bound_entries(plan);
}

// A kind of fault that strikes at a given time.
FaultKind draw_kind(Prng& prng, bool trains) {
  constexpr auto end = static_cast<std::uint64_t>(FaultKind::disk_lost);
  const std::uint64_t kind = prng.below(trains ? end + 1 : end);
  return kind == end ? FaultKind::disk_full : static_cast<FaultKind>(kind);
}

// Fits times to a training run: a faultless beginning, and an end in which it can be finished.
void fit(StormPlan& plan, Duration training) {
  constexpr Duration usual = 120s;
  plan.warm_up = training / 16;
  plan.chaos = training * 3 / 4;
  plan.pace_millionths = std::min<std::int64_t>(1'000'000, 1'000'000 * plan.chaos.count() / usual.count());
}

// Draws kinds that are not enabled too and skips them, so that leaving a kind out moves no other action.
void draw_actions(StormPlan& plan, const StormRequest& request, Duration every) {
  const auto count = request.no_actions ? 0 : static_cast<std::uint32_t>(plan.chaos / every);
  for (std::uint32_t a = 0; a < count; ++a) {
    Prng own = Prng::named(request.seed, "action", a);
    const FaultKind kind = draw_kind(own, request.training > Duration{0});
    const bool left =
        request.only.empty() || std::find(request.only.begin(), request.only.end(), a) != request.only.end();
    FaultAction action = draw_action(own, kind, plan);
    action.number = a;
    const bool in_time = request.chaos == Duration{0} || action.at < TimePoint{plan.warm_up + request.chaos};
    if (left && in_time && (plan.enabled & fault_bit(kind)) != 0) plan.actions.push_back(action);
  }
  if (request.chaos > Duration{0}) plan.chaos = std::min(plan.chaos, request.chaos);
}

}  // namespace

std::string_view fault_name(FaultKind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}

Result<FaultKind> fault_named(const std::string& name) {
  std::vector<std::string> known;
  for (std::size_t k = 0; k < fault_kinds; ++k) {
    if (kind_names[k] == name) return static_cast<FaultKind>(k);
    known.emplace_back(kind_names[k]);
  }
  const std::string hint = nearest(name, known);
  return Error{Errc::usage,
               str("there is no fault '", name, "'", hint.empty() ? "" : "; did you mean " + hint + "?")};
}

StormPlan draw_plan(const StormRequest& request) {
  StormPlan plan;
  Prng prng = Prng::named(request.seed, "plan");
  const std::uint64_t size = prng.below(8);
  plan.nodes = size == 0 ? 12 + prng.below(13) : size < 4 ? 3 + prng.below(3) : 3 + prng.below(10);
  plan.warm_up = between(prng, 2s, 20s);
  plan.chaos = between(prng, 30s, 240s);
  if (request.nodes != 0) plan.nodes = request.nodes;
  const bool trains = request.training > Duration{0};
  if (trains) fit(plan, request.training);
  for (std::size_t k = 0; k < fault_kinds; ++k) {
    const bool drawn = trains || k != static_cast<std::size_t>(FaultKind::disk_full);
    if (drawn && prng.chance(1, 2)) plan.enabled |= FaultSet{1} << k;
  }
  plan.enabled = (plan.enabled & request.allowed) | request.forced;

  plan.world.seed = request.seed;
  plan.clone = static_cast<HostId>(plan.nodes);
  plan.attackers_from = plan.clone + 1;
  plan.attackers = (plan.enabled & attacks) != 0 ? 1 + prng.below(2) : 0;
  plan.world.hosts = plan.nodes + 1 + plan.attackers;
  const auto params = static_cast<std::uint32_t>(prng.chance(1, 20) ? 30'000 : 30 + prng.below(600));
  plan.world.model = SimModel::make(params, request.seed);
  plan.world.model.log_bytes = prng.chance(1, 2) ? 64 << 20 : 4'000u << prng.below(8);
  plan.world.model.entries_max = static_cast<std::uint32_t>(1 + prng.below(params / 4));
  plan.world.mixed_codings = true;
  plan.checkpoint_every = std::max<Duration>(plan.paced(between(prng, 2s, 40s)), 100ms);
  if (prng.chance(1, 4)) plan.dead_for_good = prng.below(std::max<std::size_t>(plan.nodes / 2, 1));
  draw_network(plan, Prng::named(request.seed, "network"));
  draw_workload(plan, Prng::named(request.seed, "workload"));
  for (std::size_t i = 0; i < plan.nodes; ++i)
    plan.starts.push_back(TimePoint{prng.chance(1, 6) ? between(prng, 0s, plan.chaos)
                                                      : plan.paced(between(prng, 0s, 2s))});

  const Duration every = between(prng, 500ms, 10s);
  draw_actions(plan, request, trains ? plan.chaos / (8 + every / 200ms) : every);
  return plan;
}

}  // namespace rumor::sim
