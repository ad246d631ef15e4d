#include "gossip/broadcast/streams.h"

#include <algorithm>

#include "gossip/broadcast/link_parts.h"
#include "runtime/base/check.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

namespace {

HaveSet minus(HaveSet set, const std::set<Revocation>& revocations) {
  if (revocations.empty()) return set;
  HaveSet left = set;
  for (const auto& [stream, ranges] : set.streams()) {
    for (const Revocation& one : revocations)
      if (const auto part = one.part_of(stream)) left.erase(stream, *part);
  }
  return left;
}

}  // namespace

Streams::Streams(Core& core) : core_(core) { intern(core.options.stream); }

// ---- numbers ----

std::optional<StreamIndex> Streams::intern(const StreamId& stream) {
  const auto at = numbers_.find(stream);
  if (at != numbers_.end()) return at->second;
  Stream fresh{stream, {}, {}, 0, 0, refused(stream), {}};
  auto number = static_cast<StreamIndex>(streams_.size());
  if (!free_.empty()) {
    number = free_.back();
    free_.pop_back();
    streams_[number] = std::move(fresh);
  } else {
    if (streams_.size() >= limits::streams_max) return std::nullopt;
    streams_.push_back(std::move(fresh));
  }
  numbers_.emplace(stream, number);
  return number;
}

std::optional<StreamIndex> Streams::intern(Link& link, const StreamId& stream) {
  const auto at = numbers_.find(stream);
  if (at != numbers_.end()) return at->second;
  StreamsLink& its = parts(link).streams;
  if (its.brought.size() >= limits::streams_per_link_max) {
    if (its.recounted_at == core_.now) return std::nullopt;  // once a turn
    std::erase_if(its.brought, [&](StreamIndex one) { return holds(one); });
    if (its.brought.size() >= limits::streams_per_link_max) its.recounted_at = core_.now;
    if (its.recounted_at == core_.now) return std::nullopt;
  }
  const auto number = intern(stream);
  if (number) its.brought.push_back(*number);
  return number;
}

// The numbers that links use, but for detached links.
std::vector<bool> Streams::numbers_in_use() const {
  std::vector<bool> used(streams_.size());
  const auto mark = [&](const auto& list) {
    for (const auto& one : list) used[one.stream] = true;
  };
  for (const auto& [id, link] : core_.links) {
    if (link.detached) continue;
    const BroadcastLink& its = parts(link);
    mark(its.streams.theirs);
    mark(its.spread.announcements);
    mark(its.spread.to_ask);
    mark(its.spread.to_serve);
    mark(its.repair.to_pull);
    mark(its.repair.pull_later);
    for (const AskedKey& asked : its.spread.asked) used[asked.key.stream] = true;
  }
  return used;
}

void Streams::forget_brought(Link& link) {
  RUMOR_CHECK(link.detached);
  const std::vector<StreamIndex> brought = std::move(parts(link).streams.brought);
  parts(link).streams.brought.clear();
  if (brought.empty()) return;
  const std::vector<bool> used = numbers_in_use();
  std::vector<bool> left(streams_.size());  // still in use elsewhere
  for (const StreamIndex number : brought) {
    Stream& stream = streams_[number];
    if (holds(number)) continue;
    if (used[number] || stream.provider || !stream.missing.empty()) {
      left[number] = true;
      continue;
    }
    numbers_.erase(stream.id);
    stream = {};
    free_.push_back(number);
    for (auto& [id, other] : core_.links)
      if (number < parts(other).streams.ours.size()) parts(other).streams.ours[number] = {};
  }
  for (auto& [id, other] : core_.links) {
    if (other.detached) continue;
    for (const TheirStream& theirs : parts(other).streams.theirs) {
      if (!left[theirs.stream]) continue;
      left[theirs.stream] = false;
      parts(other).streams.brought.push_back(theirs.stream);
    }
  }
}

void Streams::define(Link& link, const StreamDef& message) {
  if (message.origin && !stream_belongs_to(message.stream, *message.origin))
    return core_.ban(link, "names another origin for a stream than the stream's name shows");
  const auto stream = intern(link, message.stream);
  if (!stream) return core_.shun(link, "names more streams than a link may");
  auto& theirs = parts(link).streams.theirs;
  const bool news = message.index == theirs.size() || (message.index < theirs.size() && message.origin &&
                                                       !theirs[message.index].origin);
  if (!news && !core_.charge(link, 1)) return;
  if (message.index > theirs.size()) return core_.close(link, "numbers its streams with gaps");
  if (message.index == theirs.size()) {
    theirs.push_back({*stream, message.origin});
  } else if (theirs[message.index].stream != *stream) {
    return core_.close(link, "gives one number to two streams");
  } else if (message.origin && !mutant(15)) {
    theirs[message.index].origin = message.origin;
  }
}

std::optional<StreamIndex> Streams::resolve(Link& link, std::uint32_t wire_index) {
  const auto& theirs = parts(link).streams.theirs;
  if (wire_index < theirs.size()) return theirs[wire_index].stream;
  core_.close(link, "uses a stream number that it has not defined");
  return std::nullopt;
}

std::uint32_t Streams::name_on(Link& link, StreamIndex stream, bool with_origin) {
  StreamsLink& its = parts(link).streams;
  LinkStream& named = its.on(stream);
  const bool origin_due = with_origin && !named.origin_named;
  if (named.named && !origin_due) return named.our_index;
  if (!named.named) named.our_index = mutant(42) && its.named > 4 ? 4 : its.named++;
  named.named = true;
  named.origin_named = streams_[stream].origin.has_value();
  RUMOR_CHECK(!with_origin || named.origin_named);
  core_.send(link, encode(StreamDef{named.our_index, streams_[stream].id, streams_[stream].origin}));
  return named.our_index;
}

// ---- keys that both ends know ----

void Streams::know(Link& link, const LocalKey& key) {
  SeqRanges& known = parts(link).streams.on(key.stream).known;
  ranges_insert(known, {key.seq, key.seq + (mutant(22) ? 1 : 0)});
  // Too many gaps: join the oldest two ranges. At worst a HAVE is left out, and the digest repairs it.
  if (known.size() > known_ranges_max) {
    known[1].first = known[0].first;
    known.erase(known.begin());
  }
}

void Streams::know(Link& link, const HaveSet& set) {
  for (const auto& [id, ranges] : set.streams()) {
    const auto stream = intern(link, id);
    if (!stream) continue;
    SeqRanges& known = parts(link).streams.on(*stream).known;
    for (const SeqRange& range : ranges) ranges_insert(known, range);
    while (known.size() > known_ranges_max) {
      known[known.size() - 2].last = known.back().last;
      known.pop_back();
    }
  }
}

bool Streams::is_known(Link& link, const LocalKey& key) {
  return ranges_contain(parts(link).streams.on(key.stream).known, key.seq);
}

// ---- keys that are wanted ----

bool Streams::refused(const StreamId& stream) const {
  if (core_.rule.refused.empty() || core_.store.have().streams().contains(stream)) return false;
  const auto decided = proven.lower_bound({stream, 0});  // one of two updates was taken back: the other must come
  if (decided != proven.end() && decided->first.stream == stream) return false;
  return std::any_of(core_.rule.refused.begin(), core_.rule.refused.end(),
                     [&](const NodeId& node) { return stream_belongs_to(stream, node); });
}

void Streams::mark_refused() {
  for (Stream& stream : streams_) stream.refused = refused(stream.id);
}

bool Streams::unwanted(const LocalKey& key) const {
  if (streams_[key.stream].refused) return true;
  if (streams_[key.stream].id == core_.options.stream && key.seq > core_.published) return true;
  const auto& revocations = core_.store.revocations();
  return std::any_of(revocations.begin(), revocations.end(),
                     [&](const Revocation& one) { return one.covers(key_of(key)); });
}

HaveSet Streams::wanted(const HaveSet& set) const {
  HaveSet left = minus(set, core_.store.revocations());
  left.erase(core_.options.stream, {core_.published + 1, seq_max});
  if (core_.rule.refused.empty()) return left;
  for (const auto& [stream, ranges] : set.streams()) {
    if (refused(stream)) left.erase(stream, {1, seq_max});
  }
  return left;
}

HaveSet Streams::keepable(HaveSet set) const {
  return minus(std::move(set), cannot_revoke);
}

}  // namespace rumor::gossip
