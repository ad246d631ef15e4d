#include "gossip/origin_pace.h"

#include <algorithm>
#include <vector>

#include "runtime/base/check.h"

namespace rumor::gossip {

void OriginPace::published(std::uint64_t seq, TimePoint now) {
  RUMOR_CHECK(own_.empty() || seq > own_.back().seq);
  own_.push_back({seq, now});
  if (own_.size() > kept_max) own_.pop_front();
  last_ = now;
}

// The age of the first own update that is not in `held`.
Duration OriginPace::lag(const SeqRanges& held, TimePoint now) const {
  for (const Own& own : own_)
    if (!ranges_contain(held, own.seq)) return now - own.at;
  return Duration{0};
}

void OriginPace::shown(LinkId link, const SeqRanges& held, TimePoint now) {
  const Duration behind = lag(held, now);
  const auto known = lags_.find(link);
  if (known != lags_.end()) {
    known->second = behind;
  } else if (behind < late) {
    lags_.emplace(link, behind);
  } else {
    return;
  }
  adjust(now);
}

void OriginPace::equal(LinkId link, TimePoint now) {
  lags_[link] = Duration{0};
  adjust(now);
}

void OriginPace::adjust(TimePoint now) {
  std::vector<Duration> lags;
  for (const auto& [link, behind] : lags_) lags.push_back(behind);
  const auto middle = lags.begin() + static_cast<std::ptrdiff_t>(lags.size() / 2);
  std::nth_element(lags.begin(), middle, lags.end());
  const Duration since = now - changed_at_;
  if (*middle > late && since >= slower_every) {
    // From the pace of the last few updates, whatever the step takes.
    const std::size_t few = std::min<std::size_t>(own_.size(), 9);
    const Duration own =
        few < 2 ? interval_least : (own_.back().at - own_[own_.size() - few].at) / static_cast<int>(few - 1);
    interval_ = std::min(std::max(interval_, own) * 3 / 2 + interval_least, Duration{interval_max});
    changed_at_ = now;
  } else if (*middle < early && since >= faster_every && interval_ > Duration{0}) {
    interval_ = interval_ * 4 / 5;
    if (interval_ < interval_least) interval_ = Duration{0};
    changed_at_ = now;
  }
}

}  // namespace rumor::gossip
