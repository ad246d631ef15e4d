#include "runtime/audit/segment_audit.h"

#include <utility>

#include "compress/payload/recorded.h"
#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor::audit {

SegmentAudit::SegmentAudit(AuditTask task, ReplicaState now, const Segment& segment, Bytes state)
    : segment_(segment),
      run_{std::move(task.config), std::move(task.form), std::move(task.data), task.data_hash,
           window_,                std::move(now),       task.parallel},
      tape_(run_.segment(), segment.first),
      at_(run_.base.have),
      next_(segment.first),
      replay_(run_, segment.origin, segment.stream, segment.first, std::move(state)) {
  run_.base.revocations.clear();  // views are compared by names, and what is revoked is in none
}

bool SegmentAudit::prepare(const Find& find) {
  if (over_) return false;
  update_ = find({segment_.stream, next_});
  window_ = UpdateLog(SIZE_MAX);
  if (next_ > segment_.last) {
    // Else the stream has ended, or not gone on yet.
    over_ = !update_ || segment_.last % run_.segment() != 0;
    if (!over_) read_view();
    return !over_;
  }
  if (!update_)
    end({Verdict::cannot_tell, "the log does not have it"}, next_);
  else if (!read_needed(*update_, find))
    end({Verdict::cannot_tell, "its view is too far from the newest weights"}, next_);
  outcome_.gone = over_;
  return !over_;
}

void SegmentAudit::work() {
  const Finding found = next_ > segment_.last ? replay_.compare_state(*update_) : replay_.next(*update_);
  run_.base.weights = {};  // the replay has its own by now
  if (found.verdict != Verdict::agrees) return end(found, next_);
  if (next_ > segment_.last)
    over_ = true;
  else
    ++outcome_.agreed;
  ++next_;
}

void SegmentAudit::end(Finding finding, std::uint64_t seq) {
  outcome_.finding = std::move(finding);
  outcome_.seq = seq;
  over_ = true;
}

// For a proof against the update behind the segment, whose root may be wrong.
void SegmentAudit::read_view() {
  outcome_.view = {};
  const auto parts = compress::split_record(*update_->payload);
  if (!parts) return;
  const auto steps = tape_.read(parts->record);
  if (steps && !steps->empty()) outcome_.view = steps->back().view;
}

// False: it would take more than is kept for the cut of an earlier moment. A tape that cannot be read is left to the
// replay, as is an update that the log does not have.
bool SegmentAudit::read_needed(const gossip::StoredUpdate& update, const Find& find) {
  outcome_.view = {};
  const auto parts = compress::split_record(*update.payload);
  if (!parts) return true;
  const auto steps = tape_.read(parts->record);
  if (!steps || steps->empty()) return true;
  if (next_ == segment_.first) read_own_in_flight(steps->front().record.in_flight, find);
  for (const TapeReader::Read& step : *steps) {
    if (!read_between(at_, step.view, find)) return false;
    at_ = step.view;
  }
  outcome_.view = at_;
  return true;
}

bool SegmentAudit::read_between(const gossip::HaveSet& from, const gossip::HaveSet& to, const Find& find) {
  for (const gossip::HaveSet& names : {from.missing_from(to), to.missing_from(from)}) {
    if (names.count() > limits::cut_undo_updates_max) return false;
    for (const auto& [stream, ranges] : names.streams())
      for (const gossip::SeqRange& range : ranges)
        for (std::uint64_t seq = range.first; seq <= range.last; ++seq) keep({stream, seq}, find);
  }
  return window_.bytes() <= limits::cut_undo_bytes_max;
}

// As StreamReplay::find_own() looks for them.
void SegmentAudit::read_own_in_flight(const std::vector<InFlightView::Waiting>& in_flight, const Find& find) {
  if (in_flight.empty()) return;
  for (std::uint64_t back = 1; back < segment_.first && back <= limits::in_flight_max; ++back) {
    const UpdateKey key{segment_.stream, segment_.first - back};
    keep(key, find);
    const auto header = window_.header(key);
    if (!header || header->period <= in_flight.front().period) return;
  }
}

void SegmentAudit::keep(const UpdateKey& key, const Find& find) {
  if (window_.contains(key)) return;
  if (const auto update = find(key)) window_.append(*update);
}

}  // namespace rumor::audit
