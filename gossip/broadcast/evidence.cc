#include "gossip/broadcast/evidence.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

HalfHash half(const Hash256& hash) {
  return HalfHash::from(hash.view().first(HalfHash::size));
}

}  // namespace

void Evidence::investigate(Link& link) {
  if (core_.now < parts(link).evidence.headers_sent_at + look_again) return;
  parts(link).evidence.headers_sent_at = core_.now;
  if (!core_.store.verify()) {
    core_.divergence =
        "this replica is damaged: its weights do not have the fingerprint of its updates (memory, disk or a "
        "bug); "
        "start it again, and it goes on from its checkpoint or from the others";
    return core_.note(Note::Level::error, core_.divergence);
  }
  core_.note(Note::Level::warning, str("the same updates give other weights at ", link.node.brief(),
                                       " than here; "
                                       "this replica is sound, comparing headers"));
  send_hashes(link);
  due_ = std::min(due_, core_.now + judged_after);
}

// Covers the updates that are still in the log, the newest of each stream last, up to headers_max in all.
void Evidence::send_hashes(Link& link) {
  std::size_t left = headers_max;
  for (const auto& [id, ranges] : core_.store.have().streams()) {
    const auto stream = streams_.intern(id);
    if (!stream) return;
    Headers headers;
    const auto flush = [&] {
      if (!headers.hashes.empty()) core_.send(link, encode(headers));
      headers.hashes.clear();
    };
    for (const SeqRange& range : ranges) {
      const std::uint64_t first =
          std::max(range.first, range.last - std::min(range.last, std::uint64_t{left}) + 1);
      for (std::uint64_t seq = first; seq <= range.last && left > 0; ++seq) {
        const auto update = core_.store.find({id, seq});
        if (!update || headers.hashes.size() == Headers::hashes_max) flush();
        if (!update) continue;
        if (headers.hashes.empty()) headers = {streams_.name_on(link, *stream, false), seq, {}};
        headers.hashes.push_back(half(header_hash(core_.options.run, update->header)));
        --left;
      }
      flush();
    }
  }
}

void Evidence::on_headers(Link& link, const Headers& headers) {
  if (headers.stream >= parts(link).streams.theirs.size())
    return core_.close(link, "uses a stream number that it has not defined");
  const StreamId& stream = streams_[parts(link).streams.theirs[headers.stream].stream].id;
  std::uint64_t seq = headers.first;
  std::size_t shown = 0;
  for (const HalfHash& hash : headers.hashes) {
    const auto ours = core_.store.find({stream, seq++});
    if (!ours || half(header_hash(core_.options.run, ours->header)) == hash) continue;
    core_.send(link, encode(Equivocation{ours->header, {}}));
    if (++shown == shown_max) return;
  }
}

void Evidence::look_at(const std::vector<UpdateHeader>& suspects) {
  for (const UpdateHeader& seen : suspects) {
    if (is_signed(seen)) compare(seen);
  }
}

bool Evidence::is_signed(const UpdateHeader& header) const {
  return update_is_signed(core_.keys, core_.options.run, header);
}

void Evidence::on_equivocation(Link& link, const Equivocation& shown) {
  const UpdateHeader& one = shown.one;
  if (streams_.proven.contains(one.key)) return;
  if (!is_signed(one) || (shown.other && !is_signed(*shown.other)))
    return core_.ban(link, "shows a header that its origin has not signed");
  if (!shown.other) return compare(one);
  const bool two = one.key == shown.other->key && one.origin == shown.other->origin &&
                   header_hash(core_.options.run, one) != header_hash(core_.options.run, *shown.other);
  if (!two) return core_.ban(link, "shows a proof that proves nothing");
  convict(one, *shown.other, &link);
}

void Evidence::compare(const UpdateHeader& seen) {
  const auto ours = core_.store.find(seen.key);
  if (!ours || header_hash(core_.options.run, ours->header) == header_hash(core_.options.run, seen)) return;
  convict(ours->header, seen, nullptr);
}

void Evidence::convict(const UpdateHeader& one, const UpdateHeader& other, const Link* from) {
  if (streams_.proven.contains(one.key) || streams_.proven.size() >= equivocations_max) return;
  const Hash256 first = header_hash(core_.options.run, one), second = header_hash(core_.options.run, other);
  const bool first_wins = first < second;
  streams_.proven[one.key] = first_wins ? first : second;
  core_.note(Note::Level::warning, str("node ", one.origin.hex(), " has signed two updates ", one.key.seq,
                                       " of stream ", one.key.stream.brief(), ": it is put out (it lies, or its ",
                                       "machine went on twice from one image)"));
  if (one.origin == core_.options.self && core_.superseded.empty())
    core_.superseded = str("another process went on from the same image of this machine, copied or set back while it "
                         "ran: both have signed update ", one.key.seq, " with the key of this peer, and the run has "
                         "put the key out. Delete identity.pem in the state directory of each, and start them again "
                         "as new peers");
  const Bytes frame = encode(Equivocation{one, other});
  core_.each_link([&](Link& link) {
    if (&link != from) core_.send(link, frame);
  });
  keep_winner(first_wins ? one : other, first_wins ? first : second);
  core_.rule.refused.insert(one.origin);
  streams_.mark_refused();
  overlay_.judge_links();
}

// Every node ends with the update of smaller hash: a node that holds the other takes it back and pulls this one.
void Evidence::keep_winner(const UpdateHeader& winner, const Hash256& winner_hash) {
  if (!core_.store.have().contains(winner.key)) return;
  const auto ours = core_.store.find(winner.key);
  if (ours && header_hash(core_.options.run, ours->header) == winner_hash) return;
  if (!ours || !core_.store.take_back(winner.key).ok()) {
    // One of the two is applied, and the log no longer says which: the digests will.
    return core_.note(Note::Level::warning, "which of the two is in these weights is no longer known");
  }
  flow_.changed(core_.now);  // the digests will find what is missing now
}

// No signer was convicted, and the weights still differ: one of the two ends is damaged, or the program is wrong.
void Evidence::tick() {
  due_ = never;
  std::size_t differing = 0, links = 0;
  core_.each_link([&](const Link& link) {
    ++links;
    differing += parts(link).repair.divergences >= 2 ? 1 : 0;
  });
  core_.each_link([&](Link& link) {
    if (parts(link).repair.divergences < 2) return;
    const std::string what = str("the same ", core_.store.digest().updates, " updates give other weights at ",
                                 link.node.brief(), " (", link.address, ") than here");
    if (2 * differing < links)
      return core_.close(link, what + ", as at nobody else: it is damaged, or it lies");
    if (!core_.divergence.empty()) return;
    core_.divergence = what + ": one of the two is damaged";
    core_.note(Note::Level::error, core_.divergence);
  });
}

}  // namespace rumor::gossip
