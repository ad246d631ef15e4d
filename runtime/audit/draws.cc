#include "runtime/audit/draws.h"

#include <algorithm>
#include <iterator>

#include "runtime/audit/kept_states.h"
#include "runtime/base/bytes.h"

namespace rumor::audit {

namespace {

bool holds_all(const gossip::HaveSet& have, const Segment& segment) {
  const auto stream = have.streams().find(segment.stream);
  return stream != have.streams().end() &&
         std::any_of(stream->second.begin(), stream->second.end(), [&](const gossip::SeqRange& range) {
           return range.first <= segment.first && segment.last <= range.last;
         });
}

}  // namespace

void Draws::on_update(const UpdateKey& update, const NodeId& origin, const gossip::HaveSet& have) {
  if (segment_ == 0 || origin == self_) return;
  if (streams_.size() < streams_max) streams_.emplace(update.stream, origin);
  const std::uint64_t first = (update.seq - 1) / segment_ * segment_ + 1;
  const Segment segment{origin, update.stream, first, first + segment_ - 1};
  add(first == 1 ? special_ : others_, segment, have);
}

void Draws::end(const gossip::HaveSet& have) {
  for (const auto& [stream, origin] : streams_) {
    const std::uint64_t head = have.head(stream);
    if (head == 0) continue;
    const std::uint64_t first = (head - 1) / segment_ * segment_ + 1;
    const Segment segment{origin, stream, first, head};
    if (first > 1 || head < segment_) add(special_, segment, have);  // else it is one already
    others_.erase({draw_of(segment), stream});
  }
  streams_.clear();
}

std::optional<Segment> Draws::next(const gossip::HaveSet& have) {
  Candidates& preferred = special_next_ ? special_ : others_;
  Candidates& other = special_next_ ? others_ : special_;
  special_next_ = !special_next_;
  if (auto taken = take(preferred, have)) return taken;
  return take(other, have);
}

Draws::Draw Draws::draw_of(const Segment& segment) const {
  ByteWriter out;
  out.raw(secret_.view());
  out.raw(segment.origin.view());
  out.raw(segment.stream.view());
  out.u64(segment.first);
  const Hash256 hash = sha256(out.bytes());
  return ByteReader(hash.view()).u64();
}

void Draws::add(Candidates& candidates, const Segment& segment, const gossip::HaveSet& have) {
  if (!part_.has(segment) || !holds_all(have, segment)) return;
  candidates.emplace(std::pair(draw_of(segment), segment.stream), segment);
  if (candidates.size() > candidates_max / 2) candidates.erase(std::prev(candidates.end()));
}

// A new trainer's state needs nobody to keep it.
std::optional<Segment> Draws::take(Candidates& candidates, const gossip::HaveSet& have) {
  while (!candidates.empty()) {
    const Segment segment = candidates.begin()->second;
    candidates.erase(candidates.begin());
    // Its origin must still have the state when the wish arrives, a segment later at most.
    const bool kept = have.head(segment.stream) < segment.first + (KeptStates::kept - 1) * segment_;
    if (kept || segment.first == 1) return segment;
  }
  return std::nullopt;
}

}  // namespace rumor::audit
