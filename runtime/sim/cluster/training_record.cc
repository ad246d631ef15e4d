#include "runtime/sim/cluster/training_record.h"

#include <algorithm>

#include "compress/payload/recorded.h"
#include "compress/payload/update.h"
#include "compress/statistics.h"
#include "models/evaluate/ensemble.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "runtime/sim/world/agreement.h"

namespace rumor::sim {

TrainingRecord::TrainingRecord(const RunConfig& config, std::shared_ptr<const models::DataSet> data,
                               const ParamLayout& layout, std::span<const std::int32_t> start, std::size_t nodes,
                               std::uint32_t curve_points)
    : config_(config),
      data_(std::move(data)),
      layout_(layout),
      delivery_(nodes),
      oracle_(start.begin(), start.end()),
      start_(config.has_own_models() ? models::to_floats(start, config.grid_bits) : std::vector<float>()),
      before_(nodes),
      curve_(config.samples, curve_points) {}

void TrainingRecord::published(const gossip::StoredUpdate& stored, std::size_t by, TimePoint now) {
  delivery_.published(stored.header.key, by, now);
  const auto update = compress::decode(layout_, compress::update_part(*stored.payload));
  RUMOR_CHECK(update.ok());
  ++own_updates_;
  own_payload_bytes_ += stored.payload->size();
  own_entries_ += update->index.size();
  own_bound_bits_ += compress::bound_bits(oracle_.size(), update->index.size());
  for (const compress::StepRun& run : compress::step_runs(layout_, *update)) {
    const auto amount = static_cast<std::uint32_t>(run.step);
    for (std::size_t k = run.first; k < run.first + run.count; ++k) {
      const auto before = static_cast<std::uint32_t>(oracle_[update->index[k]]);
      oracle_[update->index[k]] =
          static_cast<std::int32_t>(update->negative[k] ? before - amount : before + amount);
    }
  }
}

void TrainingRecord::ended(std::size_t i, const Node& node) {
  before_[i].sent += node.protocol().counters().sent_bytes;
  before_[i].received += node.protocol().counters().received_bytes;
  before_[i].samples += config_.has_own_models() ? node.neighbourhood()->own_samples() : 0;
  before_[i].said_lost += node.protocol().counters().updates_lost;
  before_[i].steps += node.figures().steps;
  before_[i].steps_held += node.figures().steps_held;
}

std::uint64_t TrainingRecord::seen(const Nodes& nodes, const Node& node) const {
  return config_.has_own_models() ? samples(nodes) : node.samples();
}

std::uint64_t TrainingRecord::samples(const Nodes& nodes) const {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    all += before_[i].samples + (nodes[i] != nullptr ? nodes[i]->neighbourhood()->own_samples() : 0);
  return all;
}

models::Evaluation TrainingRecord::evaluate(Node& node, std::uint32_t rows_max) {
  if (!node.trainer().evaluates()) return {};
  if (config_.has_own_models()) return node.trainer().evaluate(node.trainer().view().values, rows_max);
  const gossip::ReplicaDigest& digest = node.replica().digest();
  const std::string name = str(digest.have_hash.hex(), digest.fingerprint, " ", rows_max);
  if (!last_evaluation_ || last_evaluation_->first != name) {
    const auto weights = models::to_floats(node.replica().weights(), config_.grid_bits);
    last_evaluation_ = {name, node.trainer().evaluate(weights, rows_max)};
  }
  return last_evaluation_->second;
}

models::Evaluation TrainingRecord::result_of(const Nodes& nodes, Node& first) {
  if (!config_.codistills()) return evaluate(first);
  models::Evaluation mean;
  const auto up = std::count_if(nodes.begin(), nodes.end(), [](const Node* node) { return node != nullptr; });
  const double share = 1 / static_cast<double>(up);
  for (Node* node : nodes) {
    if (node == nullptr) continue;
    const models::Evaluation one = evaluate(*node);
    mean.loss += share * one.loss;
    if (one.accuracy) mean.accuracy = mean.accuracy.value_or(0) + share * *one.accuracy;
  }
  return mean;
}

CurvePoint TrainingRecord::measure(const Nodes& nodes, std::size_t i, TimePoint now,
                                   const models::Evaluation& result) {
  Node& node = *nodes[i];
  CurvePoint point;
  point.samples = seen(nodes, node);
  point.virtual_seconds = to_seconds(now.time_since_epoch());
  point.loss = result.loss;
  point.accuracy = result.accuracy;
  for (std::size_t k = 0; k < nodes.size(); ++k)
    point.sent_bytes_per_node +=
        static_cast<double>(before_[k].sent + (nodes[k] ? nodes[k]->protocol().counters().sent_bytes : 0)) /
        static_cast<double>(nodes.size());
  const compress::CompressorStats stats = node.trainer().compression();
  point.threshold = stats.threshold;
  std::uint64_t entries = 0;
  const auto& tensors = layout_.tensors();
  tensors_.resize(tensors.size());
  for (std::size_t t = 0; t < stats.tensors.size(); ++t) {
    tensors_[t].name = tensors[t].name;
    tensors_[t].params = tensors[t].size;
    tensors_[t].density.push_back(static_cast<double>(stats.tensors[t].entries) / tensors[t].size);
    tensors_[t].residual_rms.push_back(stats.tensors[t].residual_rms);
    entries += stats.tensors[t].entries;
  }
  point.density = static_cast<double>(entries) / static_cast<double>(oracle_.size());
  return point;
}

bool TrainingRecord::watch(const Nodes& nodes, TimePoint now, const Progress& progress) {
  const auto watched =
      std::find_if(nodes.begin(), nodes.end(), [](const Node* node) { return node != nullptr; });
  if (watched == nodes.end()) return true;
  const std::uint64_t samples = seen(nodes, **watched);
  if (curve_.due(samples))
    curve_.add(measure(nodes, static_cast<std::size_t>(watched - nodes.begin()), now, result_of(nodes, **watched)));
  return curve_.tell(samples, progress);
}

void TrainingRecord::count_traffic(const Nodes& nodes, SimResult& r) const {
  std::uint64_t received_updates = 0, duplicates = 0, sent = 0, control = 0, payload = 0, canonical = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    NodeTraffic traffic{str("node ", i), before_[i].sent, before_[i].received};
    if (nodes[i] != nullptr) {
      const gossip::Counters& c = nodes[i]->protocol().counters();
      traffic.sent_bytes += c.sent_bytes;
      traffic.received_bytes += c.received_bytes;
      received_updates += c.updates_received;
      duplicates += c.updates_duplicate;
      sent += c.sent_bytes;
      control += c.sent_control_bytes;
      payload += c.sent_payload_bytes;
      canonical += c.sent_canonical_bytes;
    }
    r.sent_bytes_per_node += static_cast<double>(traffic.sent_bytes) / static_cast<double>(nodes.size());
    r.received_bytes_per_node +=
        static_cast<double>(traffic.received_bytes) / static_cast<double>(nodes.size());
    r.traffic.push_back(std::move(traffic));
  }
  r.copies_per_delivery = received_updates ? static_cast<double>(received_updates + duplicates) /
                                                 static_cast<double>(received_updates)
                                           : 0;
  r.control_fraction = sent ? static_cast<double>(control) / static_cast<double>(sent) : 0;
  if (canonical > 0) r.link_coding_ratio = static_cast<double>(payload) / static_cast<double>(canonical);
}

SimResult TrainingRecord::conclude(const Nodes& nodes, TimePoint now) {
  SimResult r;
  const auto first =
      std::find_if(nodes.begin(), nodes.end(), [](const Node* node) { return node != nullptr; });
  RUMOR_CHECK(first != nodes.end());
  Node& node = **first;
  const models::Evaluation final = result_of(nodes, node);
  if (!curve_.reaches(to_seconds(now.time_since_epoch())))
    curve_.add(measure(nodes, static_cast<std::size_t>(first - nodes.begin()), now, final));
  r.curve = curve_.take();
  r.tensors = std::move(tensors_);
  r.run_name = config_.name;
  r.run_id = node.run().hex();
  r.mode = config_.mode;
  r.guarantee = guarantee_of(config_.mode);
  r.nodes = nodes.size();
  r.params = oracle_.size();
  r.samples = seen(nodes, node);
  r.virtual_seconds = to_seconds(now.time_since_epoch());
  r.loss = final.loss;
  r.accuracy = final.accuracy;

  count_traffic(nodes, r);
  const double updates = static_cast<double>(own_updates_);
  r.dense_update_bytes = 4.0 * static_cast<double>(r.params);
  r.update_bytes_mean = updates > 0 ? static_cast<double>(own_payload_bytes_) / updates : 0;
  r.ratio = own_payload_bytes_ ? r.dense_update_bytes * updates / static_cast<double>(own_payload_bytes_) : 0;
  const double entries = static_cast<double>(own_entries_);
  r.density = updates > 0 ? entries / (updates * static_cast<double>(r.params)) : 0;
  r.bits_per_entry = entries > 0 ? 8.0 * static_cast<double>(own_payload_bytes_) / entries : 0;
  r.bound_bits_per_entry = entries > 0 ? own_bound_bits_ / entries : 0;

  r.updates = delivery_.updates();
  delivery_.summarize(r);
  config_.has_own_models() ? compare_models(nodes, r) : compare_replicas(nodes, r);
  r.digest = node.status(now).digest;
  return r;
}

void TrainingRecord::compare_replicas(const Nodes& nodes, SimResult& r) const {
  r.identical = true;
  std::uint64_t said_lost = 0, missing = 0;
  for (const Totals& before : before_) said_lost += before.said_lost;
  for (const Node* each : nodes) {
    if (each == nullptr) continue;
    const Replica& replica = each->replica();
    said_lost += each->protocol().counters().updates_lost;
    missing = std::max<std::uint64_t>(missing, r.updates - std::min(r.updates, replica.have().count()));
    r.identical = r.identical && std::equal(oracle_.begin(), oracle_.end(), replica.weights().begin());
  }
  const std::uint64_t never_left = delivery_.undelivered([&](const UpdateKey& key) {
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](const Node* each) { return each != nullptr && each->replica().have().contains(key); });
  });
  r.undelivered = std::min(never_left, missing - std::min(missing, said_lost));
  r.lost = missing - r.undelivered;
}

void TrainingRecord::compare_models(const Nodes& nodes, SimResult& r) const {
  std::vector<std::span<const float>> all;
  std::uint64_t steps = 0, held = 0;
  Node* first = nullptr;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    steps += before_[i].steps + (nodes[i] != nullptr ? nodes[i]->figures().steps : 0);
    held += before_[i].steps_held + (nodes[i] != nullptr ? nodes[i]->figures().steps_held : 0);
    if (nodes[i] == nullptr) continue;
    if (first == nullptr) first = nodes[i];
    all.emplace_back(nodes[i]->trainer().view().values);
  }
  r.silent_fraction = steps > 0 ? static_cast<double>(held) / static_cast<double>(steps) : 0;
  r.disagreement = disagreement(all, start_);
  const models::Evaluation together =
      config_.codistills() ? evaluate_together(all) : first->trainer().evaluate(mean_of(all), UINT32_MAX);
  r.together_loss = together.loss;
  r.together_accuracy = together.accuracy;
}

models::Evaluation TrainingRecord::evaluate_together(std::span<const std::span<const float>> models) const {
  models::ModelConfig shape = config_.model;
  data_->describe(shape);
  return models::evaluate_ensemble(*models::make_model(shape).value(), *data_, models);
}

}  // namespace rumor::sim
