#include "runtime/sim/methods/public_copies.h"

#include <algorithm>
#include <cmath>

#include "compress/statistics.h"
#include "runtime/base/text.h"

namespace rumor::sim {

PublicCopies::PublicCopies(const RunConfig& config, const ClusterOptions& options, const ParamLayout& layout,
                           std::span<const float> start, const std::vector<std::vector<std::size_t>>& heard,
                           MethodRecord& record)
    : layout_(layout),
      record_(record),
      network_(options.network, heard.size(), options.seed),
      compressor_(layout, {.grid_bits = config.grid_bits, .emit = config.emit, .scope = config.scope}),
      unit_(std::ldexp(1.0f, -config.grid_bits)),
      difference_(layout.params()),
      peers_(heard.size()) {
  connect(heard, TimePoint{});
  for (Peer& peer : peers_) {
    peer.own.assign(start.begin(), start.end());
    for (auto& entry : peer.heard) entry.second.copy = peer.own;
  }
}

void PublicCopies::connect(const std::vector<std::vector<std::size_t>>& heard, TimePoint now) {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const auto& wanted = heard[i];
    std::erase_if(peers_[i].heard, [&](const auto& entry) {
      if (std::find(wanted.begin(), wanted.end(), entry.first) != wanted.end()) return false;
      peers_[entry.first].listeners.erase(i);
      return true;
    });
    for (const std::size_t from : wanted) {
      if (peers_[i].heard.contains(from)) continue;
      peers_[i].heard[from] = {++links_, {}};
      peers_[from].listeners[i] = links_;
      if (!peers_[from].own.empty()) send_whole(from, i, now);
    }
  }
}

void PublicCopies::adopt(std::size_t peer, std::span<const float> weights, TimePoint now) {
  Peer& p = peers_[peer];
  p.own.assign(weights.begin(), weights.end());
  for (const auto& listener : p.listeners) send_whole(peer, listener.first, now);
}

void PublicCopies::forget(std::size_t peer) {
  peers_[peer].own.clear();
  peers_[peer].inbox.clear();
}

Result<void> PublicCopies::tell(std::size_t peer, std::span<const float> weights, double density, TimePoint now) {
  Peer& p = peers_[peer];
  for (std::size_t at = 0; at < difference_.size(); ++at) difference_[at] = weights[at] - p.own[at];
  compressor_.clear_residual();
  compressor_.set_density(density);
  auto change = std::make_shared<compress::SparseUpdate>();
  if (!compressor_.absorb(difference_, *change))
    return Error{Errc::not_finite, str("the weights of node ", peer,
                                       " are no numbers any more: training has diverged; lower optimizer.rate")};
  move_copy(p.own, layout_, *change, unit_);
  const std::size_t bytes = compress::encode(layout_, *change).size();
  ++told_;
  entries_ += change->index.size();
  payload_bytes_ += bytes;
  bound_bits_ += compress::bound_bits(layout_.params(), change->index.size());
  for (const auto& [to, link] : p.listeners) send(to, {{}, peer, link, bytes + head_bytes, change, nullptr}, now);
  return {};
}

void PublicCopies::send_whole(std::size_t from, std::size_t to, TimePoint now) {
  const auto& own = peers_[from].own;
  send(to,
       {{}, from, peers_[from].listeners.at(to), own.size() * sizeof(float) + head_bytes, nullptr,
        std::make_shared<const std::vector<float>>(own)},
       now);
}

void PublicCopies::send(std::size_t to, Message message, TimePoint now) {
  message.arrives = network_.deliver(message.from, to, message.bytes, now);
  record_.sent(message.from, static_cast<double>(message.bytes));
  peers_[to].inbox.push_back(std::move(message));
}

void PublicCopies::hear(std::size_t peer, TimePoint now) {
  Peer& p = peers_[peer];
  for (; !p.inbox.empty() && p.inbox.front().arrives <= now; p.inbox.pop_front()) {
    const Message& message = p.inbox.front();
    record_.received(peer, static_cast<double>(message.bytes));
    const auto from = p.heard.find(message.from);
    if (from == p.heard.end() || from->second.link != message.link) continue;
    if (message.whole != nullptr)
      from->second.copy = *message.whole;
    else
      move_copy(from->second.copy, layout_, *message.change, unit_);
  }
}

std::vector<PublicCopies::Copy> PublicCopies::held(std::size_t peer) const {
  std::vector<Copy> copies;
  for (const auto& [of, heard] : peers_[peer].heard)
    if (!heard.copy.empty()) copies.push_back({of, heard.copy});
  return copies;
}

void PublicCopies::report(SimResult& r) const {
  if (told_ == 0 || entries_ == 0) return;
  const double told = static_cast<double>(told_), entries = static_cast<double>(entries_);
  r.update_bytes_mean = static_cast<double>(payload_bytes_) / told;
  r.ratio = r.dense_update_bytes / r.update_bytes_mean;
  r.density = entries / (told * static_cast<double>(layout_.params()));
  r.bits_per_entry = 8.0 * static_cast<double>(payload_bytes_) / entries;
  r.bound_bits_per_entry = bound_bits_ / entries;
}

void move_copy(std::span<float> copy, const ParamLayout& layout, const compress::SparseUpdate& change, float unit) {
  for (const compress::StepRun& run : compress::step_runs(layout, change))
    for (std::size_t e = run.first; e < run.first + run.count; ++e) {
      const float step = static_cast<float>(run.step) * unit;
      copy[change.index[e]] += change.negative[e] != 0 ? -step : step;
    }
}

}  // namespace rumor::sim
