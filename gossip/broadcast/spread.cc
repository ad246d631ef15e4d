#include "gossip/broadcast/spread.h"

#include <algorithm>

#include "gossip/links/link_payload.h"
#include "runtime/base/check.h"
#include "runtime/base/mutant.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

void Spread::RangeList::add(std::uint32_t stream, std::uint64_t seq) {
  ++keys;
  if (!ranges.empty() && ranges.back().stream == stream && ranges.back().range.last + 1 == seq) {
    ranges.back().range.last = seq;
  } else {
    ranges.push_back({stream, {seq, seq}});
  }
}

// ---- spreading new updates ----

void Spread::publish(const StoredUpdate& update) {
  const auto stream = streams_.intern(update.header.key.stream);
  RUMOR_CHECK(stream.has_value());  // Streams has numbered it before any peer could fill the table
  RUMOR_CHECK(update.payload != nullptr);
  streams_[*stream].origin = update.header.origin;
  core_.published = std::max(core_.published, update.header.key.seq);
  pace_.published(update.header.key.seq, update.payload->size(), core_.admitted_count(), core_.now);
  flows(streams_[*stream], update.payload->size());
  flow_.count(update.payload->size());
  flow_.changed(core_.now);
  spread(update, *stream, nullptr);
}

void Spread::spread(const StoredUpdate& update, StreamIndex stream, const Link* from) {
  const LocalKey key{stream, update.header.key.seq};
  core_.each_link([&](Link& link) {
    if (&link == from || streams_.is_known(link, key)) return;
    if (mutant(14) && static_cast<std::uint64_t>(link.id) % 8 == 2) return;
    if ((parts(link).streams.on(stream).push_to_them || mutant(13)) && !link.backlogged) {
      push(link, update, stream);
    } else {
      announce(link, key);
    }
  });
}

void Spread::push(Link& link, const StoredUpdate& update, StreamIndex stream) {
  streams_[stream].origin = update.header.origin;
  const std::uint32_t index = streams_.name_on(link, stream, true);
  send_update(core_, link, index, update);
  streams_.know(link, LocalKey{stream, update.header.key.seq});
}

void Spread::announce(Link& link, LocalKey key) {
  SpreadLink& its = parts(link).spread;
  if (its.announcements.size() >= announcements_max) return;
  its.announcements.push_back(key);
  if (!link.backlogged) due_by(its.announced_at + announce_every);
}

void Spread::send_announcements(Link& link) {
  SpreadLink& its = parts(link).spread;
  Have have;
  for (const LocalKey& key : its.announcements) {
    // The other side has named it meanwhile.
    if (streams_.is_known(link, key)) continue;
    streams_.know(link, key);
    have.keys.push_back({streams_.name_on(link, key.stream, false), key.seq});
    if (have.keys.size() == limits::keys_per_frame_max) {
      core_.send(link, encode(have));
      have.keys.clear();
    }
  }
  its.announcements.clear();
  its.announced_at = core_.now;
  if (!have.keys.empty()) core_.send(link, encode(have));
}

// ---- incoming updates ----

void Spread::on_have(Link& link, const Have& message) {
  for (const WireKey& wire : message.keys) {
    const auto stream = streams_.resolve(link, wire.stream);
    if (!stream) return;
    const LocalKey key{*stream, wire.seq};
    streams_.know(link, key);
    if (!streams_.have(key) && !streams_.unwanted(key)) announced(link, key);
  }
}

// The link that passed a forged update on should have noticed, whichever node forged it.
Result<Accepted> Spread::verified(const StoredUpdate& update) {
  const UpdateHeader& header = update.header;
  if (!update_is_signed(core_.keys, core_.options.run, header))
    return Error{Errc::corrupt, str("update ", header.key.seq, " of stream ", header.key.stream.brief(),
                                    " is not signed by ", header.origin.brief(), ", its origin")};
  return core_.store.accept(update);
}

// An update that we hold came again. With another signature it may be a second update under one name.
void Spread::suspect(const Data& message, const NodeId& origin, const Bytes& payload, const UpdateKey& key) {
  const auto ours = core_.store.find(key);
  if (!ours || ours->header.signature == message.header.signature) return;
  UpdateHeader seen = message.header;
  seen.key = key;
  seen.origin = origin;
  seen.payload_hash = core_.store.hash_of(payload);
  suspects_.push_back(seen);
}

void Spread::on_data(Link& link, const Data& message) {
  if (link.arriving) return core_.ban(link, "begins an update within another");
  if (!message.more) return on_whole(link, message);
  const auto stream = streams_.resolve(link, message.stream);
  if (!stream) return;
  begin_arriving(core_, link, message, !streams_.have({*stream, message.header.key.seq}));
  due_by(core_.now + piece_progress);
}

void Spread::on_data_more(Link& link, const DataMore& message) {
  std::optional<Arriving> whole = go_on_arriving(core_, link, message);
  if (link.arriving) due_by(core_.now + piece_progress);
  if (!whole) return;
  whole->head.payload = whole->bytes;
  on_whole(link, whole->head);
}

void Spread::on_whole(Link& link, const Data& message) {
  SpreadLink& its = parts(link).spread;
  const auto stream = streams_.resolve(link, message.stream);
  if (!stream) return;
  const auto& origin = parts(link).streams.theirs[message.stream].origin;
  if (!origin) return core_.close(link, "sends an update of a stream without an origin");
  const LocalKey key{*stream, message.header.key.seq};
  link.data_at = core_.now;
  streams_.know(link, key);
  const bool asked = take_answer(link, key);
  its.given += asked ? 1 : 0;
  if (asked || !streams_.have(key)) link.progress_at = core_.now;
  // Also decodes an update that we have: the coder's histories at both ends must go on together.
  Result<Bytes> payload = canonical_payload(link, message);
  if (!payload) {
    ++core_.counters.updates_invalid;
    return core_.close(link, str("sent an invalid update: ", payload.error().text));
  }
  if (streams_.have(key)) {
    ++core_.counters.updates_duplicate;
    suspect(message, *origin, *payload, streams_.key_of(key));
    missing_.drop(key);
    if (!asked && !core_.charge(link, 1)) return;
    if (!asked && streams_[*stream].provider != link.id) {
      core_.send(link, encode(Subscribe{streams_.name_on(link, *stream, false), false}));
    }
    return fill_window(link);
  }
  if (streams_.unwanted(key)) return fill_window(link);
  if (link.observer && *origin == link.node)
    return core_.close(link, "brings an update of its own, and may only observe");
  StoredUpdate update{message.header, std::make_shared<const Bytes>(std::move(payload).value())};
  update.header.key.stream = streams_[*stream].id;
  update.header.origin = *origin;
  update.header.payload_hash = core_.store.hash_of(*update.payload);
  accept(link, key, update);
}

// Applies an update that we lack, and passes it on.
void Spread::accept(Link& link, LocalKey key, const StoredUpdate& update) {
  const auto proven = streams_.proven.find(update.header.key);
  if (proven != streams_.proven.end() && proven->second != header_hash(core_.options.run, update.header))
    return fill_window(link);  // of two updates under one name, the one that nobody keeps
  const Result<Accepted> accepted = verified(update);
  if (!accepted) {
    ++core_.counters.updates_invalid;
    return core_.ban(link, str("sent an invalid update: ", accepted.error().text));
  }
  if (!mutant(16)) missing_.drop(key);
  Stream& stream = streams_[key.stream];
  if (stream.provider == link.id) stream.provider_head = std::max(stream.provider_head, key.seq);
  ++(*accepted == Accepted::applied ? core_.counters.updates_received : core_.counters.updates_duplicate);
  if (*accepted == Accepted::applied) {
    core_.scores.has_delivered(link.node, core_.now);
    SpreadLink& its = parts(link).spread;
    if (its.broken_announcements > 0) --its.broken_announcements;
    flow_.count(update.payload->size());
    flow_.changed(core_.now);
    flows(stream, update.payload->size());
    spread(update, key.stream, &link);
  }
  fill_window(link);
}

void Spread::on_backlog(Link& link) {
  if (!link.backlogged) due_ = core_.now;
}

// ---- time ----

void Spread::flush() {
  core_.each_link([&](Link& link) {
    SpreadLink& its = parts(link).spread;
    if (!its.announcements.empty() && !link.backlogged && core_.now - its.announced_at >= announce_every) {
      send_announcements(link);
    }
    if (its.want_batch.empty()) return;
    RangeList list;
    for (const LocalKey& key : its.want_batch) list.add(streams_.name_on(link, key.stream, false), key.seq);
    static_assert(window_max <= limits::keys_per_frame_max);
    its.want_batch.clear();
    core_.send(link, encode(Want{std::move(list.ranges)}));
  });
}

void Spread::tick() {
  due_ = never;
  watch_waiting();
  watch_wants();
  weigh();
  core_.each_link([&](Link& link) {
    SpreadLink& its = parts(link).spread;
    if (const TimePoint at = watch_arriving(core_, link); link.admitted()) due_by(at);
    if (!link.admitted()) return;
    if (!its.to_serve.empty() && !link.backlogged) serve(link);
    if (!its.announcements.empty() && !link.backlogged)
      due_by(std::max(its.announced_at + announce_every, core_.now));
  });
}

void Spread::check_invariants() const {
  std::uint32_t providing = 0, provided = 0;
  for (const auto& [id, link] : core_.links) {
    const SpreadLink& its = parts(link).spread;
    RUMOR_CHECK(its.asked.size() <= window_max);
    RUMOR_CHECK(its.announcements.size() <= announcements_max);
    RUMOR_CHECK(its.to_serve.size() <= to_serve_max);
    if (link.admitted()) providing += link.providing;
  }
  for (const Stream& stream : streams_) provided += stream.provider.has_value() ? 1 : 0;
  RUMOR_CHECK(providing == provided);
}

}  // namespace rumor::gossip
