#include "runtime/exchange/view_weight.h"

#include <algorithm>

namespace rumor {

void ViewWeight::seen(const NodeId& origin, const compress::SparseUpdate& update) {
  if (fixed_) return;
  if (!index_.empty() && origin != origin_) compare(update);
  const std::size_t looked_at = std::min(update.index.size(), looked_at_max), stride = looked_at / compared_max + 1;
  origin_ = origin;
  index_.clear();
  negative_.clear();
  for (std::size_t e = 0; e < looked_at; e += stride) {
    index_.push_back(update.index[e]);
    negative_.push_back(update.negative[e]);
  }
}

void ViewWeight::compare(const compress::SparseUpdate& update) {
  double equal = 0, common = 0;
  auto at = update.index.begin();
  for (std::size_t e = 0; e < index_.size(); ++e) {
    at = std::lower_bound(at, update.index.end(), index_[e]);
    if (at == update.index.end()) break;
    if (*at != index_[e]) continue;
    ++common;
    equal += update.negative[static_cast<std::size_t>(at - update.index.begin())] == negative_[e] ? 1 : -1;
  }
  const double left = 1 - common / memory;
  equal_ = equal_ * left + equal;
  common_ = common_ * left + common;
}

void ViewWeight::published() {
  if (fixed_ || common_ < first_heard) return;
  const double now = equal_ / common_;
  if (now < unlike_below) goes_up_ = false;
  if (now > alike_above) goes_up_ = true;
  if (goes_up_ && level_ < level_full) ++level_;
  if (!goes_up_ && level_ > 0) --level_;
}

double ViewWeight::rate_factor(double staleness) const {
  if (fixed_) return 1;
  const double missing = static_cast<double>(level_full - level_) / level_full;
  const double bare = 1 / (2 * std::max(staleness, least_delay) + 1);
  return missing > bare ? bare / missing : 1;
}

std::optional<double> ViewWeight::agreement() const {
  if (fixed_ || common_ == 0) return std::nullopt;
  return equal_ / common_;
}

}  // namespace rumor
