// The end of a run: last segments of others are made again, and own states given, before a node ends with its run.
#include <algorithm>
#include <utility>

#include "runtime/base/text.h"
#include "runtime/node/audits.h"

namespace rumor {

// All states are asked for at once, while their origins are there.
void Audits::run_is_over(Turn& turn) {
  draws_.end(incoming_.have());
  if (!core_.options.until_samples) return;  // it serves on, and has time for all of them
  over_ = turn.now;
  stays_until_ = turn.now + (outgoing_.kept_states().memory_bytes() > 0 ? stay : Duration{0});
  shares_.begin_again();
  if (!task_ || core_.config.audit_share == 0) return;
  std::uint64_t bytes = 0;
  while (last_.size() < last_max && bytes < limits::state_bytes_max) {
    const auto drawn = draws_.next_special(incoming_.have());
    if (!drawn) break;
    last_.push_back(Job{.purpose = Purpose::drawn, .segments = {*drawn}});
    begin(last_.back(), turn);
    bytes += last_.back().asked_bytes;
  }
}

// The next one whose state is here, or will not come. The share of the compute that the run file gives holds for them,
// too, but one is always made again.
std::optional<Audits::Job> Audits::next_last() {
  const double share = core_.config.audit_share / (1 - core_.config.audit_share);
  const bool spent = last_took_ > Duration{0} && to_seconds(last_took_) >= share * trained_seconds_;
  if (spent && !core_.options.observe) last_.clear();
  const auto at = std::find_if(last_.begin(), last_.end(), [](const Job& job) { return !job.asked; });
  if (at == last_.end()) return std::nullopt;
  Job job = std::move(*at);
  last_.erase(at);
  return job;
}

bool Audits::is_linked(const NodeId& node) const {
  const std::vector<gossip::PeerInfo> peers = core_.protocol->peers();
  return std::any_of(peers.begin(), peers.end(), [&](const gossip::PeerInfo& peer) { return peer.node == node; });
}

bool Audits::is_busy() const { return job_ || !last_.empty() || !checks_.empty() || !accusations_.empty(); }

bool Audits::may_end(TimePoint now) const {
  if (over_ == never) return true;
  if (is_busy()) return false;
  if (core_.protocol->peers().empty()) return true;
  return now >= stays_until_ && (!core_.protocol->gives_state() || now >= over_ + stay_max);
}

TimePoint Audits::deadline() const {
  TimePoint at = never;
  for (const auto& [update, accusation] : accusations_) at = std::min(at, accusation.first);
  if (over_ == never || core_.computing || is_busy()) return at;
  return std::min(at, core_.protocol->gives_state() ? over_ + stay_max : stays_until_);
}

void Audits::tell_last(Turn& turn) const {
  const AuditCounts& counts = last_counts_;
  if (counts.agreed + counts.differ + counts.cannot_tell == 0) return;
  std::string text = str("made ", counts.agreed + counts.differ, " first and last segments of other peers again: ",
                         counts.agreed, " agree");
  if (counts.cannot_tell > 0) text += str("; ", counts.cannot_tell, " could not be made: ", counts.untold_why);
  turn.note(gossip::Note::Level::info, std::move(text));
}

std::string Audits::waiting_for() const {
  if (over_ == never) return {};
  if (!accusations_.empty()) return "waits for the answer of a peer whose update was found false";
  const std::size_t left = last_.size() + (job_ ? 1 : 0);
  if (left > 0) return str("makes the last segments of other peers again: ", left, " left");
  return "stays a moment for those who make its last steps again";
}

}  // namespace rumor
