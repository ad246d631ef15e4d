#include "gossip/copies/copy_giver.h"

#include <algorithm>

#include "gossip/links/link_payload.h"
#include "runtime/base/check.h"

namespace rumor::gossip {

namespace {
// The pause after a call that gave as much as a link may take, so that the driver can report a backlog.
constexpr Duration give_again = 5ms;
}  // namespace

void CopyGiver::on_ask(Link& link, const CopyAsk& ask) {
  Place& place = places_.at(link.id);
  if (place.asked) return core_.close(link, "asks for our copy a second time");
  place.asked = true;
  // A copy without an update of this process lacks the updates from before it, unless there were none.
  const bool whole_past = ask.seq && (*ask.seq > 0 || core_.store.digest().updates == core_.published);
  if (whole_past && *ask.seq <= core_.published && keeps_from(*ask.seq + 1))
    place.next = *ask.seq + 1;
  else
    begin_whole(place);
}

bool CopyGiver::keeps_from(std::uint64_t seq) const {
  return seq == core_.published + 1 || (!recent_.empty() && recent_.front().header.key.seq <= seq);
}

void CopyGiver::begin_whole(Place& place) {
  if (cut_ == nullptr || cut_seq_ != core_.published) {
    cut_ = port_.own_copy();
    cut_seq_ = core_.published;
  }
  place.whole = Whole{cut_, cut_seq_, 0};
}

TimePoint CopyGiver::give(Link& link) {
  Place& place = places_.at(link.id);
  std::size_t budget = limits::link_backlog_high;
  while (place.asked && link.admitted() && !link.backlogged && budget > 0) {
    if (!place.whole && place.next > core_.published) return never;
    if (!place.whole && !keeps_from(place.next)) begin_whole(place);
    const std::size_t bytes = place.whole ? give_piece(link, place) : give_update(link, place);
    budget -= std::min(budget, bytes);
  }
  return budget == 0 ? core_.now + give_again : never;
}

std::size_t CopyGiver::give_piece(Link& link, Place& place) {
  Whole& whole = *place.whole;
  OutFrame frame = encode_piece(whole.bytes, whole.sent, whole.seq);
  const std::size_t bytes = frame.count;
  core_.send(link, std::move(frame));
  whole.sent += bytes;
  if (whole.sent == whole.bytes->size()) {
    place.next = whole.seq + 1;
    place.whole.reset();
  }
  return bytes;
}

std::size_t CopyGiver::give_update(Link& link, Place& place) {
  const StoredUpdate& update = recent_[place.next - recent_.front().header.key.seq];
  ++place.next;
  send_update(core_, link, own_index, update);
  return update.payload->size();
}

void CopyGiver::keep(const StoredUpdate& update) {
  recent_.push_back(update);
  recent_bytes_ += update.payload->size();
  const std::size_t most = std::max(recent_bytes_min, port_.copy_bytes_max());
  while (recent_bytes_ > most && recent_.size() > 1) {
    recent_bytes_ -= recent_.front().payload->size();
    recent_.pop_front();
  }
  if (std::none_of(places_.begin(), places_.end(),
                   [](const auto& place) { return place.second.whole.has_value(); }))
    cut_.reset();
}

// Links that hold our copy hold the initial weights: they need the new one whole.
void CopyGiver::begin_anew() {
  recent_.clear();
  recent_bytes_ = 0;
  cut_.reset();
  core_.each_link([&](Link& link) {
    Place& place = places_.at(link.id);
    if (place.asked) begin_whole(place);
  });
}

bool CopyGiver::may_publish() const {
  std::size_t holders = 0, behind = 0;
  core_.each_link([&](const Link& link) {
    const Place& place = places_.at(link.id);
    if (!place.asked || place.whole) return;
    ++holders;
    behind += link.backlogged ? 1 : 0;
  });
  return behind == 0 || 2 * behind < holders;
}

void CopyGiver::check_invariants() const {
  for (const auto& [id, place] : places_) RUMOR_CHECK(!place.whole || place.whole->sent < place.whole->bytes->size());
}

}  // namespace rumor::gossip
