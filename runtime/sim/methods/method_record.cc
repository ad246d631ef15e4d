#include "runtime/sim/methods/method_record.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/base/text.h"
#include "runtime/run/run_identity.h"
#include "runtime/sim/world/agreement.h"

namespace rumor::sim {

namespace {

bool all_equal(std::span<const std::span<const float>> replicas) {
  return std::all_of(replicas.begin(), replicas.end(), [&](const auto& replica) {
    return std::equal(replica.begin(), replica.end(), replicas.front().begin());
  });
}

}  // namespace

double MethodRecord::mean_sent() const {
  double all = 0;
  for (const Traffic& t : traffic_) all += t.sent;
  return all / static_cast<double>(traffic_.size());
}

Result<CurvePoint> MethodRecord::point(std::uint64_t samples, TimePoint now,
                                       const models::Evaluation& evaluation) const {
  if (!std::isfinite(evaluation.loss))
    return Error{Errc::not_finite, str("the loss is no number after ", samples,
                                       " samples: training has diverged; lower optimizer.rate")};
  CurvePoint p;
  p.samples = samples;
  p.virtual_seconds = to_seconds(now.time_since_epoch());
  p.loss = evaluation.loss;
  p.accuracy = evaluation.accuracy;
  p.sent_bytes_per_node = mean_sent();
  return p;
}

Result<bool> MethodRecord::watch(std::uint64_t samples, TimePoint now, const Evaluate& evaluate) {
  if (curve_.due(samples)) {
    auto next = point(samples, now, evaluate());
    if (!next) return next.error();
    curve_.add(*next);
  }
  stopped_ = !curve_.tell(samples, progress_);
  return !stopped_;
}

Result<SimResult> MethodRecord::conclude(std::uint64_t samples, TimePoint now, const models::Evaluation& evaluation,
                                         std::span<const std::span<const float>> replicas) {
  auto last = point(samples, now, evaluation);
  if (!last) return last.error();
  if (!curve_.reaches(last->virtual_seconds)) curve_.add(*last);
  SimResult r;
  r.curve = curve_.take();
  r.run_name = config_.name;
  r.mode = config_.mode;
  r.run_id = run_id(config_, learners_.layout(), options_.start.get()).hex();
  r.nodes = options_.nodes;
  r.sim_seed = options_.seed;
  r.params = learners_.params();
  r.samples = samples;
  r.stopped_early = stopped_;
  r.virtual_seconds = last->virtual_seconds;
  r.loss = last->loss;
  r.accuracy = last->accuracy;
  const double nodes = static_cast<double>(options_.nodes);
  if (r.virtual_seconds > 0) r.idle_fraction = std::max(0.0, 1 - to_seconds(computed_) / (r.virtual_seconds * nodes));
  double sent = 0;
  for (std::size_t i = 0; i < traffic_.size(); ++i) {
    sent += traffic_[i].sent;
    r.received_bytes_per_node += traffic_[i].received / nodes;
    r.traffic.push_back({str("node ", i), static_cast<std::uint64_t>(traffic_[i].sent),
                         static_cast<std::uint64_t>(traffic_[i].received)});
  }
  r.sent_bytes_per_node = sent / nodes;
  r.updates = updates_;
  r.dense_update_bytes = 4.0 * static_cast<double>(r.params);
  r.copies_per_delivery = 1;
  r.update_bytes_mean = r.dense_update_bytes;
  r.ratio = r.density = 1;
  r.bits_per_entry = r.bound_bits_per_entry = 32;
  r.disagreement = disagreement(replicas, learners_.start());
  r.identical = all_equal(replicas);
  // The trace of such a run is its weights.
  for (const auto& replica : replicas)
    for (const float w : replica) r.trace_hash = mix64(r.trace_hash ^ std::bit_cast<std::uint32_t>(w));
  r.digest = str(std::hex, r.trace_hash);
  return r;
}

}  // namespace rumor::sim
