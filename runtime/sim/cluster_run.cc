// A whole run: watching its progress, and the figures and comparisons at its end.
#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/sim/cluster.h"

namespace rumor::sim {

namespace {
// Virtual time after which a run that trains no further is given up: nothing in it takes this long.
constexpr Duration stalled = 600s;
}  // namespace

bool Cluster::all_complete() const {
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const Slot& slot) { return slot.node && slot.node->complete(); });
}

models::Evaluation Cluster::evaluate(std::size_t i) {
  Node& node = *nodes_[i].node;
  const gossip::ReplicaDigest& digest = node.replica().digest();
  const std::string name = digest.have_hash.hex() + str(digest.fingerprint);
  if (!last_evaluation_ || last_evaluation_->first != name) {
    const auto weights = Trainer::to_floats(node.replica().weights(), config_.grid_bits);
    last_evaluation_ = {name, node.trainer().evaluate(weights, UINT32_MAX)};
  }
  return last_evaluation_->second;
}

CurvePoint Cluster::measure(std::size_t i) {
  const Node& node = *nodes_[i].node;
  const models::Evaluation evaluation = evaluate(i);
  CurvePoint point;
  point.samples = node.replica().samples();
  point.virtual_seconds = to_seconds(now_.time_since_epoch());
  point.loss = evaluation.loss;
  point.accuracy = evaluation.accuracy;
  for (const Slot& slot : nodes_)
    point.sent_bytes_per_node +=
        static_cast<double>(slot.sent_before +
                            (slot.node ? slot.node->protocol().counters().sent_bytes : 0)) /
        static_cast<double>(nodes_.size());
  const compress::CompressorStats stats = nodes_[i].node->trainer().compression();
  point.threshold = stats.threshold;
  std::uint64_t entries = 0;
  const auto& tensors = nodes_[i].node->trainer().layout().tensors();
  result_.tensors.resize(tensors.size());
  for (std::size_t t = 0; t < stats.tensors.size(); ++t) {
    result_.tensors[t].name = tensors[t].name;
    result_.tensors[t].params = tensors[t].size;
    result_.tensors[t].density.push_back(static_cast<double>(stats.tensors[t].entries) / tensors[t].size);
    result_.tensors[t].residual_rms.push_back(stats.tensors[t].residual_rms);
    entries += stats.tensors[t].entries;
  }
  point.density = static_cast<double>(entries) / static_cast<double>(oracle_.size());
  return point;
}

bool Cluster::watch(const Progress& progress) {
  const auto watched =
      std::find_if(nodes_.begin(), nodes_.end(), [](const Slot& s) { return s.node != nullptr; });
  if (watched == nodes_.end()) return true;
  const std::uint64_t samples = watched->node->replica().samples();
  if (samples * options_.curve_points < next_point_ * config_.samples) return true;
  next_point_ = static_cast<std::uint32_t>(samples * options_.curve_points / config_.samples) + 1;
  result_.curve.push_back(measure(static_cast<std::size_t>(watched - nodes_.begin())));
  const double fraction = std::min(1.0, static_cast<double>(samples) / static_cast<double>(config_.samples));
  return !progress || progress(result_.curve.back(), fraction);
}

std::string Cluster::last_words() const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].ended && *nodes_[i].ended != 0)
      return str("node ", i, " ended with status ", *nodes_[i].ended, ": ", nodes_[i].last_note);
  return "";
}

Result<SimResult> Cluster::run(const Progress& progress) {
  std::uint64_t samples_seen = 0, events = 0;
  TimePoint last_progress = now_;
  while (!all_complete() && !queue_.empty()) {
    auto [at, event] = queue_.pop();
    now_ = at;
    handle(event);
    if (++events % 64 != 0) continue;
    if (!watch(progress)) {
      stop_early_ = true;
      break;
    }
    if (const std::string words = last_words(); !words.empty()) return Error{Errc::io, words};
    std::uint64_t samples = 0;
    for (const Slot& slot : nodes_)
      samples = std::max(samples, slot.node ? slot.node->replica().samples() : 0);
    if (samples != samples_seen) last_progress = now_;
    samples_seen = samples;
    if (now_ - last_progress > stalled && !all_complete())
      return Error{Errc::io, str("the run stands still at ", samples, " samples after ",
                                 to_seconds(now_.time_since_epoch()),
                                 " virtual seconds; please report it with --sim-seed ", options_.seed)};
  }
  return conclude();
}

std::vector<std::int32_t> Cluster::oracle() const {
  return oracle_;
}

void Cluster::count_traffic(SimResult& r) const {
  std::uint64_t received_updates = 0, duplicates = 0, sent = 0, control = 0, payload = 0, canonical = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Slot& slot = nodes_[i];
    NodeTraffic traffic{str("node ", i), slot.sent_before, slot.received_before};
    if (slot.node) {
      const gossip::Counters& c = slot.node->protocol().counters();
      traffic.sent_bytes += c.sent_bytes;
      traffic.received_bytes += c.received_bytes;
      received_updates += c.updates_received;
      duplicates += c.updates_duplicate;
      sent += c.sent_bytes;
      control += c.sent_control_bytes;
      payload += c.sent_payload_bytes;
      canonical += c.sent_canonical_bytes;
    }
    r.sent_bytes_per_node += static_cast<double>(traffic.sent_bytes) / static_cast<double>(nodes_.size());
    r.received_bytes_per_node +=
        static_cast<double>(traffic.received_bytes) / static_cast<double>(nodes_.size());
    r.traffic.push_back(std::move(traffic));
  }
  r.copies_per_delivery = received_updates ? static_cast<double>(received_updates + duplicates) /
                                                 static_cast<double>(received_updates)
                                           : 0;
  r.control_fraction = sent ? static_cast<double>(control) / static_cast<double>(sent) : 0;
  if (canonical > 0) r.link_coding_ratio = static_cast<double>(payload) / static_cast<double>(canonical);
}

Result<SimResult> Cluster::conclude() {
  SimResult r = std::move(result_);
  const auto first =
      std::find_if(nodes_.begin(), nodes_.end(), [](const Slot& s) { return s.node != nullptr; });
  if (first == nodes_.end()) return Error{Errc::io, "no node is alive at the end"};
  result_ = {};
  const Node& node = *first->node;
  r.run_name = config_.name;
  r.run_id = node.run().hex();
  r.mode = config_.mode;
  r.nodes = nodes_.size();
  r.sim_seed = options_.seed;
  r.params = oracle_.size();
  r.samples = node.replica().samples();
  r.virtual_seconds = to_seconds(now_.time_since_epoch());
  r.trace_hash = trace_;
  r.stopped_early = stop_early_;
  const models::Evaluation final = evaluate(static_cast<std::size_t>(first - nodes_.begin()));
  r.loss = final.loss;
  r.accuracy = final.accuracy;

  count_traffic(r);
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
  r.identical = true;
  for (const Slot& slot : nodes_) {
    if (!slot.node) continue;
    const Replica& replica = slot.node->replica();
    r.lost = std::max<std::uint64_t>(r.lost, r.updates - std::min(r.updates, replica.have().count()));
    r.identical = r.identical && std::equal(oracle_.begin(), oracle_.end(), replica.weights().begin());
  }
  r.digest = node.status(now_).digest;
  if (!stop_early_ && r.lost == 0 && !r.identical)
    return Error{
        Errc::diverged,
        "replicas hold the same updates and different bits; please report it with this run file and seed"};
  return r;
}

}  // namespace rumor::sim
