// The pulling half of Repair: which of the updates that a link's vector names are pulled from it, and when
// (PROTOCOL.md 6.4).
//
// A plan per link has the keys to pull now, in order, and those to pull after a grace, which the provider of their
// stream will probably push before. Keys that the link answered with NOT_AVAILABLE are gone: no plan has them.
#include <algorithm>

#include "gossip/broadcast/repair.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

// Whether the provider of this stream will push new updates. Once training has ended at both ends, it counts only while
// it still sends something.
bool Repair::is_pushed(const Stream& stream, const Link& link) const {
  const Link* provider = core_.find(stream.provider);
  if (provider == nullptr) return false;
  const bool both_finished = core_.finished && link.digest && link.digest->finished;
  return !both_finished || core_.now - provider->data_at < flow_within;
}

void Repair::plan_pulls(Link& link) {
  RepairLink& its = parts(link).repair;
  its.to_pull.clear();
  its.pull_later.clear();
  HaveSet lacking = its.gone.missing_from(core_.store.have().missing_from(*its.vector));
  if (mutant(30) && lacking.count() == 1) lacking = {};
  for (const auto& [id, ranges] : lacking.streams()) {
    const auto stream = streams_.intern(link, id);
    if (!stream) continue;  // the table is full: later, when updates of earlier streams have come
    const std::uint64_t head = core_.store.have().head(id);
    // Numbers above our head are probably on their way from the provider.
    const bool flows = is_pushed(streams_[*stream], link);
    for (const SeqRange& range : ranges) {
      (flows && range.first > head ? its.pull_later : its.to_pull).push_back({*stream, range});
    }
  }
  // The grace runs from the first vector that showed the keys: vectors may come more often than it lasts.
  its.pull_later_at =
      its.pull_later.empty() ? never : std::min(its.pull_later_at, core_.now + pull_grace);
  due_by(its.pull_later_at);
  refill(link);
}

void Repair::refill(Link& link) {
  RepairLink& its = parts(link).repair;
  if (joining_.busy() || !link.admitted()) return;
  while (!its.to_pull.empty()) {
    LocalRange& next = its.to_pull.front();
    const LocalKey key{next.stream, next.range.first};
    if (!streams_.have(key) && !spread_.pull(link, key)) return;
    if (++next.range.first > next.range.last) its.to_pull.pop_front();
  }
}

void Repair::on_not_available(Link& link, const NotAvailable& message) {
  RepairLink& its = parts(link).repair;
  for (const WireRange& wire : message.ranges) {
    if (wire.stream >= parts(link).streams.theirs.size()) return;  // Spread closes the link for it
    const StreamIndex stream = parts(link).streams.theirs[wire.stream].stream;
    for (const AskedKey& asked : parts(link).spread.asked) {
      const LocalKey key = asked.key;
      const bool named = key.stream == stream && wire.range.first <= key.seq && key.seq <= wire.range.last;
      if (named && !streams_.have(key)) its.gone.insert(streams_.key_of(key));
    }
  }
  if (its.gone.count() > gone_max) return core_.shun(link, "cannot give what it claims to have");
}

// Pulls the keys whose grace is over, and more of the others.
void Repair::watch_pulls(Link& link) {
  RepairLink& its = parts(link).repair;
  if (its.pull_later_at <= core_.now) {
    its.pull_later_at = never;
    its.to_pull.insert(its.to_pull.end(), its.pull_later.begin(), its.pull_later.end());
    its.pull_later.clear();
  }
  due_by(its.pull_later_at);
  refill(link);
}

}  // namespace rumor::gossip
