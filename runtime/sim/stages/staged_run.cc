#include "runtime/sim/stages/staged_run.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

constexpr Duration stands_still = 600s;  // nothing in a run takes this long
constexpr std::uint64_t looks_every = 64;  // events
constexpr Duration saves_every = 2s;      // checkpoints, where a fault keeps disks
constexpr std::int64_t starts_within_us = 20'000;  // processes do not start at the same instant
constexpr HostId seed_hosts = 3;

bool any_keeps_disk(const ClusterOptions& options) {
  return std::any_of(options.planned_faults.begin(), options.planned_faults.end(),
                     [](const PlannedFault& fault) { return fault.keeps_disk; });
}

}  // namespace

StagedRun::StagedRun(std::unique_ptr<StagedPeers> peers, std::uint64_t samples, ClusterOptions options)
    : options_(std::move(options)),
      samples_wanted_(samples),
      peers_(std::move(peers)),
      world_(world_options()),
      faults_(world_, options_.nodes, options_.seed, run_under_faults()) {
  peers_->watch(world_, any_keeps_disk(options_) ? saves_every : Duration{0});
}

Result<std::unique_ptr<StagedRun>> StagedRun::create(const RunConfig& config,
                                                     std::shared_ptr<const models::DataSet> data,
                                                     ClusterOptions options) {
  if (options.start != nullptr)
    return Error{Errc::usage, str("pipeline.stages = ", config.pipeline.stages,
                                  ": model.weights is not possible with stages so far; leave it out")};
  auto peers = StagedPeers::create(config, std::move(data), options);
  if (!peers) return peers.error();
  std::unique_ptr<StagedRun> run(new StagedRun(std::move(*peers), config.samples, std::move(options)));
  run->start();
  return run;
}

WorldOptions StagedRun::world_options() {
  WorldOptions world;
  world.hosts = options_.nodes;
  world.seed = options_.seed;
  world.fabric = fabric_of(options_.network);
  world.fabric.shared_downlink = true;
  world.make_peer = [this](const PeerStart& start) { return peers_->make_peer(start); };
  world.invariants_every = UINT32_MAX;
  world.refuses = [this](HostId from, HostId to) { return faults_.parts(from, to); };
  return world;
}

InjectedFaults::Run StagedRun::run_under_faults() {
  const auto keeps_trained = [this](HostId i) {
    const Node* const node = peers_->node(i);
    return peers_->trained_replicas(peers_->stage_of(i)) > (node != nullptr && node->caught_up() ? 1u : 0u);
  };
  return {.is_over = [this] { return peers_->complete(); },
          .is_ending = [this] { return peers_->samples() * 10 > samples_wanted_ * 9; },
          // Its training is on its disk, or another replica of its stage has it.
          .may_die = [keeps_trained](HostId i, bool keeps_disk) { return keeps_disk || keeps_trained(i); },
          .starts_again =
              [this](HostId i, bool keeps_disk) {
                world_.start(i, keeps_disk ? DiskFault::none : DiskFault::lost);
              }};
}

void StagedRun::start() {
  Prng chance = Prng::named(options_.seed, "cluster");
  for (HostId i = 0; i < options_.nodes; ++i) {
    for (HostId seed = 0; seed < std::min<std::size_t>(seed_hosts, options_.nodes); ++seed)
      world_.host(i).seeds.push_back(ProtocolWorld::address_of(seed));
    world_.start(i, DiskFault::none, Duration(chance.between(0, starts_within_us)));
  }
  const gossip::BacklogMarks marks = peers_->node(0)->protocol().backlog_marks();
  world_.fabric().set_backlog_marks(marks.high, marks.low);
  faults_.schedule(options_.light_faults, options_.planned_faults);
}

std::optional<Error> StagedRun::failure() const {
  if (auto error = peers_->failure()) return error;
  if (!world_.violation()) return std::nullopt;
  const Violation& v = *world_.violation();
  return Error{Errc::io, str("node ", v.host, " breaks ", v.invariant, " at ",
                             fixed(to_seconds(v.at.time_since_epoch()), 3), " s: ", v.text,
                             "; please report it with --sim-seed ", options_.seed)};
}

Result<StagedResult> StagedRun::run(const Progress& progress) {
  std::uint64_t seen = 0, events = 0;
  TimePoint last_progress = world_.now();
  while (!peers_->complete() && world_.step()) {
    if (++events % looks_every != 0) continue;
    if (!peers_->show(progress)) {
      stopped_early_ = true;
      break;
    }
    if (const auto error = failure()) return *error;
    if (const std::uint64_t samples = peers_->samples(); std::exchange(seen, samples) != samples)
      last_progress = world_.now();
    if (world_.now() - last_progress > stands_still)
      return Error{Errc::io, str("the run stands still at ", seen, " samples after ",
                                 to_seconds(world_.now().time_since_epoch()),
                                 " virtual seconds; please report it with --sim-seed ", options_.seed)};
  }
  if (const auto error = failure()) return *error;
  return conclude();
}

Result<StagedResult> StagedRun::conclude() {
  for (std::size_t stage = 0; stage < peers_->stages(); ++stage)
    if (peers_->trained_replicas(stage) == 0)
      return Error{Errc::io, str("no node of stage ", stage + 1, " is alive at the end")};
  StagedResult result = peers_->conclude();
  result.stopped_early = stopped_early_;
  result.link_resets = faults_.link_resets();
  result.restarts = faults_.restarts();
  result.partitions = faults_.partitions();
  for (const StageResult& stage : result.stages)
    if (!stopped_early_ && stage.run.lost + stage.run.undelivered == 0 && !stage.run.identical)
      return Error{Errc::diverged, "replicas of a stage hold the same updates and different bits; please report it "
                                   "with this run file and seed"};
  return result;
}

}  // namespace rumor::sim
