// The pulling half of Spread: the missing keys, which link to ask, and when to ask another.
#include <algorithm>

#include "gossip/broadcast/spread.h"
#include "runtime/base/check.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

// Returns the entry of a key that this link has named; null when it has named too many that have not come.
Missing* Spread::missing(Link& link, LocalKey key) {
  SpreadLink& its = parts(link).spread;
  auto& list = streams_[key.stream].missing;
  const auto at = list.find(key.seq);
  if (at != list.end()) return &at->second;
  if (streams_.missing_total >= limits::missing_max) return nullptr;
  if (its.missing_brought >= limits::missing_per_link_max) return nullptr;
  ++streams_.missing_total;
  ++its.missing_brought;
  Missing& entry = list[key.seq];
  entry.brought_by = link.id;
  return &entry;
}

void Spread::no_longer_missing(const Missing& entry) {
  if (!mutant(24)) --streams_.missing_total;
  const auto at = core_.links.find(entry.brought_by);
  if (at != core_.links.end()) --parts(at->second).spread.missing_brought;
}

void Spread::drop_missing(LocalKey key) {
  auto& list = streams_[key.stream].missing;
  const auto at = list.find(key.seq);
  if (at == list.end()) return;
  no_longer_missing(at->second);
  list.erase(at);
}

void Spread::announced(Link& link, LocalKey key) {
  Stream& stream = streams_[key.stream];
  const bool fresh = !stream.missing.contains(key.seq);
  Missing* entry = missing(link, key);
  if (entry == nullptr) return;
  auto& from = entry->announcers;
  if (from.size() < Missing::announcers_max && std::find(from.begin(), from.end(), link.id) == from.end()) {
    from.push_back(link.id);
  }
  if (entry->asked) return;
  // Our own stream needs no provider: others can only give back updates that a snapshot has displaced.
  const bool own = stream.id == core_.options.stream;
  if (!stream.provider && !own && !has_declined(link, key.stream)) subscribe(link, key.stream);
  if (stream.provider == link.id || own) {
    ask(link, key, *entry);
  } else if (fresh) {
    waiting_.push_back({core_.now + reparent_after, key});
    due_by(waiting_.front().at);
  }
}

// The window opens with the updates that the link has given: the first sizes say little about later ones.
std::size_t Spread::window(const Link& link) const {
  const std::uint64_t mean = std::max<std::uint64_t>(flow_.mean_bytes(), 1);
  if (mutant(28)) return window_max + 1;
  const std::uint64_t most = std::min<std::uint64_t>(window_min + parts(link).spread.given, window_max);
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(window_bytes / mean, window_min, most));
}

// Asks now, or when the window of the link has room.
void Spread::ask(Link& link, LocalKey key, Missing& entry) {
  SpreadLink& its = parts(link).spread;
  RUMOR_CHECK(!entry.asked);
  if (its.asked.size() >= window(link)) {
    if (its.to_ask.size() >= announcements_max) return drop_missing(key);  // the digest will find it again
    return its.to_ask.push_back(key);
  }
  entry.asked = link.id;
  its.asked.push_back({key, core_.now});
  its.want_batch.push_back(key);
  due_by(core_.now + want_progress);
}

bool Spread::pull(Link& link, LocalKey key) {
  if (parts(link).spread.asked.size() >= window(link)) return false;
  Missing* entry = missing(link, key);
  if (entry == nullptr) return false;
  auto& from = entry->announcers;
  if (from.size() < Missing::announcers_max && std::find(from.begin(), from.end(), link.id) == from.end()) {
    from.push_back(link.id);
  }
  if (!entry->asked) ask(link, key, *entry);
  return true;
}

// Returns true when the key was asked for on this link, and marks it as answered.
bool Spread::take_answer(Link& link, LocalKey key) {
  SpreadLink& its = parts(link).spread;
  const auto at = std::find_if(its.asked.begin(), its.asked.end(), [&](const AskedKey& asked) {
    return asked.key.stream == key.stream && asked.key.seq == key.seq;
  });
  if (at == its.asked.end()) return false;
  its.asked.erase(at);
  auto& list = streams_[key.stream].missing;
  const auto entry = list.find(key.seq);
  if (entry != list.end() && entry->second.asked == link.id) entry->second.asked.reset();
  return true;
}

void Spread::fill_window(Link& link) {
  SpreadLink& its = parts(link).spread;
  while (!its.to_ask.empty() && its.asked.size() < window(link)) {
    const LocalKey key = its.to_ask.front();
    its.to_ask.pop_front();
    auto& list = streams_[key.stream].missing;
    const auto entry = list.find(key.seq);
    if (entry != list.end() && !entry->second.asked) ask(link, key, entry->second);
  }
}

void Spread::subscribe(Link& link, StreamIndex stream) {
  Stream& state = streams_[stream];
  RUMOR_CHECK(!state.provider);
  state.provider = link.id;
  state.provider_head = 0;
  ++link.providing;
  core_.send(link, encode(Subscribe{streams_.name_on(link, stream, false), true}));
}

void Spread::unsubscribe(Link& link, StreamIndex stream) {
  Stream& state = streams_[stream];
  RUMOR_CHECK(state.provider == link.id);
  state.provider.reset();
  --link.providing;
  if (!mutant(27)) core_.send(link, encode(Subscribe{streams_.name_on(link, stream, false), false}));
}

bool Spread::has_declined(Link& link, StreamIndex stream) {
  const TimePoint at = parts(link).streams.on(stream).declined_at;
  return at != never && core_.now - at < declined_for;
}

void Spread::on_decline(Link& link, const Decline& message) {
  const auto stream = streams_.resolve(link, message.stream);
  if (!stream) return;
  parts(link).streams.on(*stream).declined_at = core_.now;
  Stream& state = streams_[*stream];
  if (state.provider != link.id) return;
  state.provider.reset();
  --link.providing;
  std::vector<std::uint64_t> late;
  for (const auto& [seq, entry] : state.missing)
    if (!entry.asked) late.push_back(seq);
  for (const std::uint64_t seq : late) ask_elsewhere({*stream, seq}, nullptr);
}

Link* Spread::best_announcer(StreamIndex stream, const Missing& entry, const Link* except) {
  Link* best = nullptr;
  for (const LinkId id : entry.announcers) {
    Link* link = core_.find(id);
    if (link == nullptr || link == except) continue;
    const bool fit = core_.scores.may_provide(link->node) && !has_declined(*link, stream);
    if (best != nullptr && fit != (core_.scores.may_provide(best->node) && !has_declined(*best, stream))) {
      if (fit) best = link;
      continue;
    }
    if (best == nullptr || parts(*link).spread.asked.size() < parts(*best).spread.asked.size()) best = link;
  }
  return best;
}

// Returns a link that has named the key in its vector, and has not said since that it keeps it no longer.
Link* Spread::claimant(const UpdateKey& key, const Link* except) {
  Link* best = nullptr;
  core_.each_link([&](Link& link) {
    const RepairLink& repair = parts(link).repair;
    if (&link == except || !repair.vector || !repair.vector->contains(key) || repair.gone.contains(key)) return;
    if (best == nullptr || parts(link).spread.asked.size() < parts(*best).spread.asked.size()) best = &link;
  });
  return best;
}

// The key was to come from `except` and will not: asks another link. Without one the digests will find the key.
void Spread::ask_elsewhere(LocalKey key, const Link* except) {
  auto& list = streams_[key.stream].missing;
  const auto at = list.find(key.seq);
  if (at == list.end() || at->second.asked) return;
  if (except != nullptr) std::erase(at->second.announcers, except->id);
  Link* next = best_announcer(key.stream, at->second, except);
  if (next == nullptr) next = claimant(streams_.key_of(key), except);
  if (next == nullptr) return drop_missing(key);
  const Stream& stream = streams_[key.stream];
  if (!stream.provider && stream.id != core_.options.stream) subscribe(*next, key.stream);
  ask(*next, key, at->second);
}

void Spread::on_not_available(Link& link, const NotAvailable& message) {
  SpreadLink& its = parts(link).spread;
  for (const WireRange& wire : message.ranges) {
    const auto stream = streams_.resolve(link, wire.stream);
    if (!stream) return;
    for (std::uint64_t seq = wire.range.first; seq <= wire.range.last; ++seq) {
      if (!take_answer(link, {*stream, seq})) continue;
      // It may have dropped an update that it named in a vector; an announced one it had a moment ago.
      const auto& vector = parts(link).repair.vector;
      const bool announced = !vector || !vector->contains(streams_.key_of({*stream, seq}));
      if (announced) ++its.broken_announcements;
      ask_elsewhere({*stream, seq}, &link);
    }
  }
  if (its.broken_announcements > limits::broken_announcements_max)
    return core_.shun(link, "announces what it does not have, time and again");
  fill_window(link);
}

void Spread::give_up_asked(Link& link) {
  SpreadLink& its = parts(link).spread;
  const std::deque<AskedKey> asked = std::move(its.asked);
  const std::deque<LocalKey> to_ask = std::move(its.to_ask);
  its.asked.clear();
  its.to_ask.clear();
  its.want_batch.clear();
  for (const AskedKey& entry : asked) {
    auto& list = streams_[entry.key.stream].missing;
    const auto at = list.find(entry.key.seq);
    if (at == list.end() || at->second.asked != link.id) continue;
    if (mutant(26)) continue;
    at->second.asked.reset();
    ask_elsewhere(entry.key, &link);
  }
  for (const LocalKey& key : to_ask) ask_elsewhere(key, &link);
}

void Spread::link_lost(Link& link) {
  RUMOR_CHECK(!link.admitted());
  for (StreamIndex stream = 0; stream < streams_.size() && link.providing > 0; ++stream) {
    Stream& state = streams_[stream];
    if (state.provider != link.id || mutant(25)) continue;
    state.provider.reset();
    --link.providing;
    std::vector<std::uint64_t> orphans;
    for (const auto& [seq, entry] : state.missing) {
      if (!entry.asked) orphans.push_back(seq);
    }
    for (const std::uint64_t seq : orphans) ask_elsewhere({stream, seq}, &link);
  }
  give_up_asked(link);
}

void Spread::drop_held() {
  for (StreamIndex stream = 0; stream < streams_.size(); ++stream) {
    std::erase_if(streams_[stream].missing, [&](const auto& entry) {
      const LocalKey key{stream, entry.first};
      const bool drop = streams_.have(key) || streams_.unwanted(key);
      if (drop) no_longer_missing(entry.second);
      return drop;
    });
  }
}

// Keys that were left to a provider and should be here by now.
void Spread::watch_waiting() {
  while (!waiting_.empty() && waiting_.front().at <= core_.now) {
    const LocalKey key = waiting_.front().key;
    waiting_.pop_front();
    auto& list = streams_[key.stream].missing;
    const auto at = list.find(key.seq);
    if (at != list.end() && !at->second.asked) reconsider(key, at->second);
  }
  if (!waiting_.empty()) due_by(waiting_.front().at);
}

void Spread::reconsider(LocalKey key, Missing& entry) {
  const Stream& stream = streams_[key.stream];
  const Link* provider = core_.find(stream.provider);
  if (provider == nullptr || key.seq < stream.provider_head) {
    return ask_elsewhere(key, nullptr);  // no link pushes it, or the provider has skipped it
  }
  // While bytes arrive from the provider, asking elsewhere would only add to a queue; but not for ever: two
  // nodes may have become each other's provider.
  const bool arriving = core_.now - provider->data_at < reparent_after;
  entry.strikes = static_cast<std::uint8_t>(entry.strikes + (arriving ? weak_strike : strike));
  if (entry.strikes >= strikes_max && !mutant(29)) {
    Link* next = best_announcer(key.stream, entry, provider);
    if (next != nullptr) return reparent(key.stream, *next);
    return ask_elsewhere(key, nullptr);
  }
  waiting_.push_back({core_.now + reparent_after, key});
}

void Spread::reparent(StreamIndex stream, Link& next) {
  Stream& state = streams_[stream];
  if (Link* old = core_.find(state.provider)) unsubscribe(*old, stream);
  subscribe(next, stream);
  std::vector<std::uint64_t> late;
  for (const auto& [seq, entry] : state.missing) {
    if (!entry.asked) late.push_back(seq);
  }
  for (const std::uint64_t seq : late) {
    const auto at = state.missing.find(seq);
    if (at == state.missing.end() || at->second.asked) continue;
    const auto& from = at->second.announcers;
    const bool there = std::find(from.begin(), from.end(), next.id) != from.end();
    Link* whom = there ? &next : best_announcer(stream, at->second, nullptr);
    if (whom != nullptr) ask(*whom, {stream, seq}, at->second);
  }
}

void Spread::watch_wants() {
  core_.each_link([&](Link& link) {
    SpreadLink& its = parts(link).spread;
    if (its.asked.empty()) return;
    const TimePoint deadline = std::max(its.asked.front().at, link.progress_at) + want_progress;
    if (core_.now < deadline) return due_by(deadline);
    for (StreamIndex stream = 0; stream < streams_.size() && link.providing > 0; ++stream) {
      if (streams_[stream].provider == link.id) unsubscribe(link, stream);
    }
    give_up_asked(link);
    // Counts twice when the link has never given anything.
    const bool gave_before = link.progress_at > link.admitted_at;
    if (core_.scores.has_broken_promise(link.node, core_.now) ||
        (!gave_before && core_.scores.has_broken_promise(link.node, core_.now)))
      core_.shun(link, "announces and does not give, time and again");
  });
}

}  // namespace rumor::gossip
