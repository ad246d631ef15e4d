// Making the stages, and the run as a whole. staged_events.cc has what happens in between.
#include "runtime/sim/stages/staged_run.h"

#include <algorithm>
#include <utility>

#include "models/evaluate/evaluation.h"
#include "runtime/base/mix64.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/stages/stage_place.h"

namespace rumor::sim {

namespace {

constexpr Duration stands_still = 600s;  // nothing in a run takes this long

FabricOptions staged_fabric(const ClusterOptions& options) {
  FabricOptions fabric = fabric_of(options.network);
  fabric.hosts = options.nodes;
  fabric.seed = options.seed;
  fabric.shared_downlink = true;
  return fabric;
}

// Settings that stages do not have.
Result<void> check_staged(const RunConfig& config, const ClusterOptions& options) {
  const std::uint32_t stages = config.pipeline.stages;
  const auto refused = [&](const std::string& why) {
    return Error{Errc::usage, str("pipeline.stages = ", stages, ": ", why)};
  };
  if (options.nodes < stages)
    return refused(str(options.nodes, " nodes are too few, since each stage needs one; raise --nodes"));
  if (auto fits = check_stages(config); !fits) return fits;
  if (options.start != nullptr)
    return refused("model.weights is not possible with stages so far; leave it out");
  if (options.light_faults || !options.planned_faults.empty())
    return refused("faults are not injected into stages so far; set --faults none");
  return {};
}

}  // namespace

StagedRun::StagedRun(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                     ClusterOptions options)
    : config_(config),
      data_(std::move(data)),
      options_(std::move(options)),
      border_(border_numbers(config_.pipeline)),
      peers_(options_.nodes),
      fabric_(
          staged_fabric(options_),
          [this](TimePoint at, FabricEvent event) {
            queue_.push(at, {event, {}});
          },
          [](End, bool) {}) {}

Result<std::unique_ptr<StagedRun>> StagedRun::create(const RunConfig& config,
                                                     std::shared_ptr<const models::DataSet> data,
                                                     ClusterOptions options) {
  if (auto fits = check_staged(config, options); !fits) return fits.error();
  std::unique_ptr<StagedRun> run(new StagedRun(config, std::move(data), std::move(options)));
  if (auto made = run->make_stages(); !made) return made.error();
  return run;
}

Result<void> StagedRun::make_stages() {
  models::ModelConfig described = config_.model;
  data_->describe(described);
  auto units = models::cut_model(described, stages(), config_.pipeline.cut);
  if (!units) return units.error();
  units_ = std::move(*units);
  configs_.assign(stages(), config_);
  for (std::size_t stage = 0; stage < stages(); ++stage)
    if (auto made = make_stage(stage); !made) return made;
  share_costs();
  link_stages();
  return {};
}

Result<void> StagedRun::make_stage(std::size_t stage) {
  RunConfig& config = configs_[stage];
  take_stage(config, units_, static_cast<std::uint32_t>(stage) + 1);
  ClusterOptions options = options_;
  options.nodes = replicas(stage);
  options.seed = mix64(options_.seed + stage);
  options.trainer = [this, stage, &config](std::size_t node, const NodeOptions& of_node) {
    return make_trainer(peer_of(stage, node), config, of_node);
  };
  options.defer = [this, stage](std::size_t node) {
    if (!finished_) beginning_.push_back(peer_of(stage, node));
    return !finished_;
  };
  // The first stage decides how long the run is: the others have as many rows as come up to them.
  if (stage > 0) options.until_samples = samples_unbounded;
  auto cluster = Cluster::create(config, data_, std::move(options));
  if (!cluster) return cluster.error();
  clusters_.push_back(std::move(*cluster));
  return {};
}

Result<std::unique_ptr<Trainer>> StagedRun::make_trainer(std::size_t i, const RunConfig& config,
                                                         const NodeOptions& options) {
  const std::uint32_t rows = config.batch / config_.pipeline.micro_batches;
  auto made = StageTrainer::create(config, data_, options.shard, sampling_seed(config, options.node),
                                   {border_, rows});
  if (!made) return made.error();
  Peer& peer = peers_[i];
  peer.stage = i % stages();
  peer.node = i / stages();
  gossip::PipelineOptions of_pipeline;
  of_pipeline.self.pipeline.bytes.fill(1);
  of_pipeline.self.stage = static_cast<std::uint32_t>(peer.stage) + 1;
  of_pipeline.self.stages = stages();
  of_pipeline.self.numbers = static_cast<std::uint32_t>(border_);
  of_pipeline.stream = options.stream;
  of_pipeline.micro_batches = config_.pipeline.micro_batches;
  peer.pipeline = std::make_unique<gossip::Pipeline>(of_pipeline, Prng::named(options_.seed, "pipeline", i));
  std::unique_ptr<Trainer> trainer = std::move(made->trainer);
  peer.trainer = std::move(*made);
  peer.trainer_of_node = trainer.get();
  return trainer;
}

void StagedRun::share_costs() {
  std::uint64_t all = 0;
  std::vector<std::uint64_t> of_stage;
  for (std::size_t stage = 0; stage < stages(); ++stage) {
    of_stage.push_back(peers_[peer_of(stage, 0)].trainer.worker->model().multiply_adds(1));
    all += of_stage.back();
  }
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const double share = static_cast<double>(of_stage[peers_[i].stage]) / static_cast<double>(all);
    const double cost = to_seconds(options_.step_of(i)) * share / config_.pipeline.micro_batches;
    peers_[i].forward = std::max(from_seconds(cost / 3), Duration{1});
    peers_[i].backward = 2 * peers_[i].forward;
  }
}

void StagedRun::link_stages() {
  for (std::size_t lower = 0; lower < peers_.size(); ++lower) {
    for (std::size_t upper = 0; upper < peers_.size(); ++upper) {
      if (peers_[upper].stage != peers_[lower].stage + 1) continue;
      const ConnectionId connection = fabric_.open(static_cast<HostId>(lower), static_cast<HostId>(upper));
      for (const int side : {0, 1})
        call(side == 0 ? lower : upper, [&](gossip::Pipeline& one, gossip::PipelineOutbox& out) {
          one.on_linked(ProtocolWorld::link_of({connection, side}), out);
        });
    }
  }
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (peers_[i].stage == 0)
      call(i, [&](gossip::Pipeline& one, gossip::PipelineOutbox& out) { one.set_emitting(true, now_, out); });
}

bool StagedRun::all_complete() const {
  return std::all_of(clusters_.begin(), clusters_.end(), [](const auto& one) { return one->all_complete(); });
}

std::optional<Error> StagedRun::failure() const {
  if (refused_) return refused_;
  for (const auto& cluster : clusters_)
    if (auto error = cluster->failure()) return error;
  return std::nullopt;
}

Result<StagedResult> StagedRun::run(const Progress& progress) {
  for (std::uint64_t turn = 0; !all_complete(); ++turn) {
    advance();
    if (progress && turn % 256 == 0 && !progress(point(), share_done()))
      return Error{Errc::io, "stopped before the end, with stages that are not equally far"};
    if (const auto error = failure()) return *error;
    if (!finished_ && clusters_.front()->all_complete() && queue_.empty()) finish();
    if (now_ - last_step_ > stands_still)
      return Error{Errc::io, str("the run stands still after ", to_seconds(now_.time_since_epoch()),
                                 " virtual seconds; please report it with --sim-seed ", options_.seed)};
  }
  return conclude();
}

CurvePoint StagedRun::point() const {
  CurvePoint point;
  point.samples = clusters_.front()->node(0)->samples();
  point.virtual_seconds = to_seconds(now_.time_since_epoch());
  point.loss = clusters_.back()->node(0)->figures().train_loss;
  std::uint64_t sent = result_.activation_bytes + result_.gradient_bytes + result_.control_bytes;
  for (std::size_t i = 0; i < peers_.size(); ++i)
    sent += clusters_[i % stages()]->node(i / stages())->protocol().counters().sent_bytes;
  point.sent_bytes_per_node = static_cast<double>(sent) / static_cast<double>(peers_.size());
  return point;
}

double StagedRun::share_done() const {
  return std::min(1.0, static_cast<double>(point().samples) / static_cast<double>(config_.samples));
}

// The first stage is done and nothing is under way: steps that wait for micro-batches wait in vain.
void StagedRun::finish() {
  finished_ = true;
  last_step_ = now_;
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (std::exchange(peers_[i].in_step, false)) clusters_[peers_[i].stage]->end_step(peers_[i].node, true);
  for (std::size_t stage = 1; stage < clusters_.size(); ++stage) clusters_[stage]->finish_all();
}

Result<StagedResult> StagedRun::conclude() {
  const double seconds = to_seconds(last_step_.time_since_epoch());
  result_.virtual_seconds = seconds;
  result_.trace_hash = trace_;
  for (std::size_t stage = 0; stage < stages(); ++stage) {
    auto concluded = clusters_[stage]->conclude();
    if (!concluded) return concluded.error();
    StageResult one{units_[stage], std::move(*concluded), 0};
    for (std::size_t node = 0; node < replicas(stage); ++node)
      one.utilisation +=
          to_seconds(peers_[peer_of(stage, node)].computed) / seconds / static_cast<double>(replicas(stage));
    result_.trace_hash = mix64(result_.trace_hash ^ one.run.trace_hash);
    result_.stages.push_back(std::move(one));
  }
  for (const Peer& peer : peers_) {
    const gossip::PipelineFigures& more = peer.pipeline->figures();
    gossip::PipelineFigures& sum = result_.figures;
    for (const auto figure : {&gossip::PipelineFigures::steps, &gossip::PipelineFigures::counted,
                              &gossip::PipelineFigures::dropped, &gossip::PipelineFigures::late,
                              &gossip::PipelineFigures::lost, &gossip::PipelineFigures::refused,
                              &gossip::PipelineFigures::repeats, &gossip::PipelineFigures::sums_again})
      sum.*figure += more.*figure;
  }
  result_.evaluation = evaluate();
  return std::move(result_);
}

// The tensors of the stages without their exits, one after another, are those of the whole model.
models::Evaluation StagedRun::evaluate() const {
  models::ModelConfig whole = config_.model;
  data_->describe(whole);
  const auto model = models::make_model(whole).value();
  std::vector<float> weights;
  for (std::size_t stage = 0; stage < stages(); ++stage) {
    const auto part = models::to_floats(clusters_[stage]->node(0)->replica().weights(), config_.grid_bits);
    models::ModelConfig of_part = configs_[stage].model;
    data_->describe(of_part);
    const auto body = models::params_without_exit(models::make_model(of_part).value()->layout());
    weights.insert(weights.end(), part.begin(), part.begin() + body);
  }
  return models::evaluate_on_test(*model, *data_, weights, UINT32_MAX);
}

}  // namespace rumor::sim
