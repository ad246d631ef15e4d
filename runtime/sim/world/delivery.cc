#include "runtime/sim/world/delivery.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor::sim {

void Delivery::published(const UpdateKey& key, std::size_t by, TimePoint now) {
  const auto [at, fresh] = updates_.emplace(key, Update{now, now, std::vector<std::uint8_t>(nodes_, unseen)});
  RUMOR_CHECK(fresh);
  at->second.hops[by] = 0;
}

void Delivery::applied(const UpdateKey& key, std::size_t node, std::size_t from, TimePoint now) {
  Update& update = updates_.at(key);
  if (update.hops[node] != unseen) {
    ++doubled_;
    return;
  }
  const std::uint8_t before = update.hops[from];
  update.hops[node] = before == unseen ? 1 : static_cast<std::uint8_t>(std::min<int>(before + 1, unseen - 1));
  update.last = now;
  delays_.push_back(static_cast<float>(to_seconds(now - update.at)));
  hops_sum_ += update.hops[node];
  hops_max_ = std::max<std::uint64_t>(hops_max_, update.hops[node]);
}

void Delivery::restarted(std::size_t node) {
  for (auto& [key, update] : updates_) update.hops[node] = unseen;
}

namespace {

// The quantile `share` of the values; 0 when there are none.
double quantile(std::vector<float> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return static_cast<double>(values[static_cast<std::size_t>(at)]);
}

}  // namespace

void Delivery::summarize(SimResult& result) const {
  result.doubled = doubled_;
  result.delivery_p50 = quantile(delays_, 0.5);
  result.delivery_p99 = quantile(delays_, 0.99);
  std::vector<float> last;
  for (const auto& [key, update] : updates_)
    last.push_back(static_cast<float>(to_seconds(update.last - update.at)));
  result.delivery_last_p99 = quantile(std::move(last), 0.99);
  result.hops_mean =
      delays_.empty() ? 0 : static_cast<double>(hops_sum_) / static_cast<double>(delays_.size());
  result.hops_max = static_cast<double>(hops_max_);
}

}  // namespace rumor::sim
