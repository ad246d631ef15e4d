#include "runtime/exchange/neighbourhood.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compress/payload/apply.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/replica/checkpoint.h"

namespace rumor {

namespace {
constexpr std::size_t lost_kept = 2;
constexpr Duration lost_kept_for = 10min;
// Weight of a peer's own samples in its estimate of the mean of all peers; the neighbours' mean has the rest.
constexpr double own_sample_share = 1.0 / 16;
// Bytes of a copy beyond its weights: its layout, and the names of a peer's updates, one range a life.
constexpr std::size_t copy_names_bytes_max = 1 << 20;
// More samples than any run has: a larger claim counts as this.
constexpr std::uint64_t samples_believed = std::uint64_t{1} << 50;
}  // namespace

double consensus_rate(double density) {
  return std::sqrt(density) / 2;
}

gossip::LinkCounts links_of(const NeighbourRules& rules) {
  const std::size_t wanted = rules.neighbours;
  return {.low = (wanted + 1) / 2,
          .target = wanted,
          .high = wanted + (wanted + 1) / 2,
          .dialled = (wanted + 1) / 2};
}

Neighbourhood::Neighbourhood(RunForm form, Replica& own, const NeighbourRules& rules)
    : form_(std::move(form)),
      own_(own),
      initial_(own.weights().begin(), own.weights().end()),
      rules_(rules),
      sums_(form_.layout.params(), 0) {}

double Neighbourhood::share(double density) const {
  const double rate = rules_.consensus_rate > 0 ? rules_.consensus_rate : consensus_rate(density);
  return rate / static_cast<double>(1 + links_of(rules_).high);
}

std::size_t Neighbourhood::size() const {
  return static_cast<std::size_t>(std::count_if(neighbours_.begin(), neighbours_.end(),
                                                [](const auto& one) { return one.second.counts; }));
}

double Neighbourhood::mean_samples() const {
  const double own = static_cast<double>(own_samples()), neighbours = static_cast<double>(size());
  double sum = 0;
  for (const auto& [node, neighbour] : neighbours_)
    if (neighbour.counts) {
      const std::uint64_t since = own_samples() - std::min(own_samples(), neighbour.ours_then);
      sum += static_cast<double>(std::min(neighbour.copy.period(), samples_believed) + since);
    }
  return neighbours > 0 ? own_sample_share * own + (1 - own_sample_share) * sum / neighbours : own;
}

// ---- sums ----

void Neighbourhood::count(Neighbour& neighbour, bool counts) {
  if (neighbour.counts == counts) return;
  neighbour.counts = counts;
  const std::span<const std::int32_t> theirs = neighbour.copy.weights();
  const std::uint32_t sign = counts ? 1u : 0u - 1u;
  for (std::size_t i = 0; i < sums_.size(); ++i)
    sums_[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums_[i]) +
                                         sign * static_cast<std::uint32_t>(theirs[i]));
}

void Neighbourhood::pull(double share, std::span<float> pull, Parallel& parallel) const {
  RUMOR_CHECK(pull.size() == sums_.size());
  const float step = std::ldexp(static_cast<float>(share), -form_.grid_bits);
  const auto count = static_cast<std::uint32_t>(size());
  const std::span<const std::int32_t> ours = own_.weights();
  const compress::Stretch all = compress::all_of(form_.layout);
  compress::each_stretch(all, all.end, parallel, [&](std::size_t, compress::Stretch where) {
    for (std::uint64_t i = where.begin; i < where.end; ++i) {
      const std::uint32_t apart = static_cast<std::uint32_t>(sums_[i]) - count * static_cast<std::uint32_t>(ours[i]);
      pull[i] = static_cast<float>(static_cast<std::int32_t>(apart)) * step;
    }
  });
}

std::vector<std::span<const std::int32_t>> Neighbourhood::teachers(std::size_t count, std::uint64_t turn) const {
  std::vector<std::span<const std::int32_t>> all, chosen;
  for (const auto& [node, neighbour] : neighbours_)
    if (neighbour.counts) all.push_back(neighbour.copy.weights());
  count = std::min(count, all.size());
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(all[(turn * count + i) % all.size()]);
  return chosen;
}

// ---- copies ----

std::shared_ptr<const Bytes> Neighbourhood::own_copy() const {
  return std::make_shared<const Bytes>(encode_copy(form_, own_.state()));
}

std::size_t Neighbourhood::copy_bytes_max() const {
  ByteWriter form;
  form_.encode(form);
  return sizeof(std::int32_t) * form_.layout.params() + form.size() + copy_names_bytes_max;
}

Neighbourhood::Neighbour& Neighbourhood::hold(const NodeId& node) {
  const auto at = neighbours_.find(node);
  if (at != neighbours_.end()) return at->second;
  return neighbours_.emplace(node, Neighbour{Replica(form_.run, form_.layout, initial_)}).first->second;
}

std::optional<std::uint64_t> Neighbourhood::held(const NodeId& node, const StreamId& stream) const {
  const auto at = neighbours_.find(node);
  if (at == neighbours_.end() || !at->second.copy.have().streams().contains(stream)) return std::nullopt;
  return at->second.copy.have().head(stream);
}

void Neighbourhood::hold_initial(const NodeId& node) {
  const auto at = neighbours_.find(node);
  if (at == neighbours_.end()) return void(hold(node));
  if (at->second.copy.have().empty()) return;
  count(at->second, false);  // it has lost all that it had
  neighbours_.erase(at);
  hold(node);
}

Result<void> Neighbourhood::take_copy(const NodeId& node, BytesView bytes) {
  auto state = decode_copy(form_, bytes);
  if (!state) return state.error();
  Neighbour& neighbour = hold(node);
  const bool linked = neighbour.linked;
  Replica fresh(form_.run, form_.layout, initial_);
  if (auto restored = fresh.restore(std::move(state).value()); !restored) return restored;
  count(neighbour, false);
  neighbour.copy = std::move(fresh);
  neighbour.ours_then = own_samples();
  count(neighbour, linked && !neighbour.copy.have().empty());
  return {};
}

Result<void> Neighbourhood::take_update(const gossip::StoredUpdate& update) {
  Neighbour& neighbour = hold(update.header.origin);
  auto change = compress::decode(form_.layout, *update.payload);
  if (!change) return change.error();
  const auto taken = neighbour.copy.apply(update.header, *change);
  if (!taken) return taken.error();
  if (*taken == gossip::Accepted::duplicate) return {};
  neighbour.copy.hand_over();  // no view follows it
  neighbour.ours_then = own_samples();
  const compress::SparseUpdate* const one = &*change;
  neighbour.counts ? compress::apply(form_.layout, {&one, 1}, sums_) : count(neighbour, neighbour.linked);
  return {};
}

void Neighbourhood::begin_with(const NodeId& node) {
  RUMOR_CHECK(own_.have().empty());
  ReplicaState state = neighbours_.at(node).copy.state();
  state.samples = 0;  // those were not ours
  RUMOR_CHECK(own_.restore(std::move(state)).ok());
}

std::optional<gossip::ReplicaDigest> Neighbourhood::digest_of(const NodeId& node) const {
  const auto at = neighbours_.find(node);
  if (at == neighbours_.end()) return std::nullopt;
  return at->second.copy.digest();
}

void Neighbourhood::set_linked(const NodeId& node, bool linked, TimePoint now) {
  Neighbour& neighbour = hold(node);
  neighbour.linked = linked;
  neighbour.lost_at = now;
  count(neighbour, linked && !neighbour.copy.have().empty());
  forget_old(now);
}

// The copies of the last few neighbours stay for a while, since their links may come back.
void Neighbourhood::forget_old(TimePoint now) {
  std::vector<std::pair<TimePoint, NodeId>> lost;
  for (const auto& [node, neighbour] : neighbours_)
    if (!neighbour.linked) lost.emplace_back(neighbour.lost_at, node);
  std::sort(lost.rbegin(), lost.rend());
  for (std::size_t i = 0; i < lost.size(); ++i)
    if (i >= lost_kept || now - lost[i].first >= lost_kept_for) neighbours_.erase(lost[i].second);
}

std::size_t Neighbourhood::memory_bytes() const {
  std::size_t bytes = capacity_bytes(sums_) + capacity_bytes(initial_);
  for (const auto& [node, neighbour] : neighbours_)
    bytes += neighbour.copy.weight_bytes() + neighbour.copy.entry_bytes();
  return bytes;
}

void Neighbourhood::check_invariants() const {
  std::vector<std::uint32_t> sums(sums_.size(), 0);
  for (const auto& [node, neighbour] : neighbours_) {
    RUMOR_CHECK(!neighbour.counts || (neighbour.linked && !neighbour.copy.have().empty()));
    RUMOR_CHECK(neighbour.copy.verify());
    const std::span<const std::int32_t> theirs = neighbour.copy.weights();
    if (!neighbour.counts) continue;
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<std::uint32_t>(theirs[i]);
  }
  for (std::size_t i = 0; i < sums.size(); ++i) RUMOR_CHECK(sums[i] == static_cast<std::uint32_t>(sums_[i]));
}

}  // namespace rumor
