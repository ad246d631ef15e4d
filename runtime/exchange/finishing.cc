#include "runtime/exchange/finishing.h"

#include <algorithm>

namespace rumor {

Finishing::Verdict Finishing::judge(TimePoint now, const View& view) {
  if (stuck_at_ == never || view.updates != updates_) {
    updates_ = view.updates;
    progress_at_ = now;
    stuck_at_ = now + stuck;
    handed_over_ = false;
  }
  handed_over_ = handed_over_ || view.handed_over;
  quiet_until_.reset();
  if (view.has_links) {
    alone_until_.reset();
    if (view.all_converged && (!view.follows || now >= progress_at_ + quiet)) return Verdict::done;
    if (view.all_converged) quiet_until_ = progress_at_ + quiet;
    return now < stuck_at_ ? Verdict::waits : Verdict::given_up;
  }
  // The last neighbours have left, as every peer does in the end, and hold the same updates.
  if (handed_over_ || !view.knows_others) return Verdict::done;
  if (!alone_until_) alone_until_ = now + alone;
  return now < deadline() ? Verdict::waits : Verdict::done;
}

TimePoint Finishing::deadline() const {
  return std::min({stuck_at_, alone_until_.value_or(never), quiet_until_.value_or(never)});
}

}  // namespace rumor
