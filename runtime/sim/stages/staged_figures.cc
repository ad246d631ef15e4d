// StagedPeers: the curve of the joined model, and the figures at the end.
#include <algorithm>

#include "models/evaluate/evaluation.h"
#include "runtime/base/check.h"
#include "runtime/sim/stages/staged_peers.h"

namespace rumor::sim {

namespace {

const Node* first_up(const TrainingRecord::Nodes& nodes) {
  const auto up = std::find_if(nodes.begin(), nodes.end(), [](const Node* one) { return one != nullptr; });
  return up == nodes.end() ? nullptr : *up;
}

}  // namespace

bool StagedPeers::each_stage_is_up() const {
  for (std::size_t stage = 0; stage < stages(); ++stage)
    if (first_up(nodes_of(stage)) == nullptr) return false;
  return true;
}

// The tensors of the stages without their exits, one after another, are those of the whole model.
models::Evaluation StagedPeers::evaluate() const {
  models::ModelConfig whole = config_.model;
  data_->describe(whole);
  const auto model = models::make_model(whole).value();
  std::vector<float> weights;
  for (std::size_t stage = 0; stage < stages(); ++stage) {
    const auto part = models::to_floats(first_up(nodes_of(stage))->replica().weights(), config_.grid_bits);
    models::ModelConfig of_part = places_[stage].config.model;
    data_->describe(of_part);
    const auto body = models::params_without_exit(models::make_model(of_part).value()->layout());
    weights.insert(weights.end(), part.begin(), part.begin() + body);
  }
  return models::evaluate_on_test(*model, *data_, weights, UINT32_MAX);
}

CurvePoint StagedPeers::point() const {
  const models::Evaluation evaluation = evaluate();
  CurvePoint point;
  point.samples = samples();
  point.virtual_seconds = to_seconds(world_->now().time_since_epoch());
  point.loss = evaluation.loss;
  point.accuracy = evaluation.accuracy;
  point.sent_bytes_per_node = static_cast<double>(all_bytes_) / static_cast<double>(hosts());
  return point;
}

bool StagedPeers::show(const Progress& progress) {
  if (!each_stage_is_up()) return true;
  const std::uint64_t seen = samples();
  if (curve_.due(seen)) curve_.add(point());
  return curve_.tell(seen, progress);
}

StageResult StagedPeers::conclude(std::size_t stage, double seconds) {
  StageResult one;
  one.units = places_[stage].config.model.units;
  one.run = records_[stage]->conclude(nodes_of(stage), world_->now());
  one.run.sim_seed = options_.seed;
  for (std::size_t i = stage; i < hosts(); i += stages())
    one.utilisation += to_seconds(world_->host(static_cast<HostId>(i)).computed) / seconds /
                       static_cast<double>(replicas(stage));
  one.uplink = one.run.sent_bytes_per_node / seconds / static_cast<double>(options_.network.up_bytes_per_second);
  double alive = 0;
  for (const Node* node : nodes_of(stage)) {
    if (node == nullptr) continue;
    const StageStatus status = node->stage_status(world_->now());
    one.waited_above += status.waited_above / seconds;
    one.waited_link += status.waited_link / seconds;
    one.waited_below += status.waited_below / seconds;
    ++alive;
  }
  for (double* share : {&one.waited_above, &one.waited_link, &one.waited_below}) *share /= std::max(alive, 1.0);
  one.counted = books_.counted(stage);
  one.missing = books_.missing(stage);
  return one;
}

StagedResult StagedPeers::conclude() {
  RUMOR_CHECK(each_stage_is_up());
  StagedResult result;
  result.virtual_seconds = to_seconds(last_step_.time_since_epoch());
  result.training_seconds = to_seconds(last_step_ - first_work_.value_or(last_step_));
  const double seconds = std::max(result.training_seconds, 1e-6);
  for (std::size_t stage = 0; stage < stages(); ++stage) result.stages.push_back(conclude(stage, seconds));
  result.samples = samples();
  result.bound = bound_;
  result.sim_seed = options_.seed;
  result.trace_hash = world_->trace();
  result.activation_bytes = activation_bytes_;
  result.gradient_bytes = gradient_bytes_;
  result.control_bytes = control_bytes_;
  result.all_bytes = all_bytes_;
  result.figures = figures_;
  for (HostId i = 0; i < hosts(); ++i)
    if (node(i) != nullptr) add(result.figures, node(i)->pipeline()->figures());
  const CurvePoint last = point();
  result.evaluation = {last.loss, last.accuracy};
  if (!curve_.reaches(last.virtual_seconds)) curve_.add(last);
  result.curve = curve_.take();
  return result;
}

}  // namespace rumor::sim
