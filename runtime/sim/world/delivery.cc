#include "runtime/sim/world/delivery.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/sim/world/quantile.h"

namespace rumor::sim {

void Delivery::published(const UpdateKey& key, std::size_t by, TimePoint now) {
  const auto [at, fresh] = updates_.emplace(key, Update{now, now, std::vector<std::uint8_t>(nodes_, unseen), false});
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
  update.delivered = true;
  delays_.push_back(static_cast<float>(to_seconds(now - update.at)));
  hops_sum_ += update.hops[node];
  hops_max_ = std::max<std::uint64_t>(hops_max_, update.hops[node]);
}

void Delivery::restarted(std::size_t node) {
  for (auto& [key, update] : updates_) update.hops[node] = unseen;
}

void Delivery::summarize(SimResult& result) const {
  result.doubled = doubled_;
  std::vector<float> delays = delays_, last;
  result.delivery_p50 = quantile(delays, 0.5);
  result.delivery_p99 = quantile(delays, 0.99);
  for (const auto& [key, update] : updates_)
    last.push_back(static_cast<float>(to_seconds(update.last - update.at)));
  result.delivery_last_p99 = quantile(last, 0.99);
  result.hops_mean =
      delays_.empty() ? 0 : static_cast<double>(hops_sum_) / static_cast<double>(delays_.size());
  result.hops_max = static_cast<double>(hops_max_);
}

}  // namespace rumor::sim
