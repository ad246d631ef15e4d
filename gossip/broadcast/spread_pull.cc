// The pulling half of Spread: which link to ask for a missing key, and when to ask another.
#include <algorithm>

#include "gossip/broadcast/spread.h"
#include "runtime/base/check.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

void Spread::announced(Link& link, LocalKey key) {
  Stream& stream = streams_[key.stream];
  const bool fresh = missing_.find(key) == nullptr;
  Missing* entry = missing_.add(link, key);
  if (entry == nullptr || entry->asked) return;
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
    if (its.to_ask.size() >= announcements_max) return missing_.drop(key);  // the digest will find it again
    return its.to_ask.push_back(key);
  }
  entry.asked = link.id;
  its.asked.push_back({key, core_.now});
  its.want_batch.push_back(key);
  due_by(core_.now + want_progress);
}

bool Spread::pull(Link& link, LocalKey key) {
  if (parts(link).spread.asked.size() >= window(link)) return false;
  Missing* entry = missing_.add(link, key);
  if (entry == nullptr) return false;
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
  Missing* entry = missing_.find(key);
  if (entry != nullptr && entry->asked == link.id) entry->asked.reset();
  return true;
}

void Spread::fill_window(Link& link) {
  SpreadLink& its = parts(link).spread;
  while (!its.to_ask.empty() && its.asked.size() < window(link)) {
    const LocalKey key = its.to_ask.front();
    its.to_ask.pop_front();
    Missing* entry = missing_.find(key);
    if (entry != nullptr && !entry->asked) ask(link, key, *entry);
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
  for (const std::uint64_t seq : missing_.unasked(*stream)) ask_elsewhere({*stream, seq}, nullptr, Decliners::wait);
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
void Spread::ask_elsewhere(LocalKey key, const Link* except, Decliners decliners) {
  Missing* entry = missing_.find(key);
  if (entry == nullptr || entry->asked) return;
  if (except != nullptr) std::erase(entry->announcers, except->id);
  Link* next = best_announcer(key.stream, *entry, except);
  if (next == nullptr) next = claimant(streams_.key_of(key), except);
  if (next == nullptr) return missing_.drop(key);
  const Stream& stream = streams_[key.stream];
  const bool may_provide = decliners == Decliners::provide || !has_declined(*next, key.stream);
  if (!stream.provider && stream.id != core_.options.stream && may_provide) subscribe(*next, key.stream);
  ask(*next, key, *entry);
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
  for (const AskedKey& one : asked) {
    Missing* entry = missing_.find(one.key);
    if (entry == nullptr || entry->asked != link.id || mutant(26)) continue;
    entry->asked.reset();
    ask_elsewhere(one.key, &link);
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
    for (const std::uint64_t seq : missing_.unasked(stream)) ask_elsewhere({stream, seq}, &link);
  }
  give_up_asked(link);
}

// Keys that were left to a provider and should be here by now.
void Spread::watch_waiting() {
  while (!waiting_.empty() && waiting_.front().at <= core_.now) {
    const LocalKey key = waiting_.front().key;
    waiting_.pop_front();
    Missing* entry = missing_.find(key);
    if (entry != nullptr && !entry->asked) reconsider(key, *entry);
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
  if (Link* old = core_.find(streams_[stream].provider)) unsubscribe(*old, stream);
  subscribe(next, stream);
  for (const std::uint64_t seq : missing_.unasked(stream)) {
    Missing* entry = missing_.find({stream, seq});
    if (entry == nullptr || entry->asked) continue;
    const auto& from = entry->announcers;
    const bool there = std::find(from.begin(), from.end(), next.id) != from.end();
    Link* whom = there ? &next : best_announcer(stream, *entry, nullptr);
    if (whom != nullptr) ask(*whom, {stream, seq}, *entry);
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
