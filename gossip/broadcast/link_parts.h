// The state that the parts of Broadcast keep about one link: a struct for each part, which alone changes it.
//
// Thread: plain values.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "gossip/broadcast/streams.h"

namespace rumor::gossip {

// One stream on one link.
struct LinkStream {
  SeqRanges known;                // one side has named the key to the other: neither DATA nor HAVE is due
  std::uint32_t our_index = 0;    // on this link
  bool named = false;             // we have sent STREAM
  bool origin_named = false;      // with the origin
  bool push_to_them = false;      // they subscribed
  TimePoint declined_at = never;  // when they declined to push it to us
  TimePoint we_declined_at = never;
  bool depends = false;  // they subscribed again: they have it from nobody else
};

// A stream as the other side's STREAM named it.
struct TheirStream {
  StreamIndex stream = 0;
  std::optional<NodeId> origin;
};

struct StreamsLink {
  std::vector<LinkStream> ours;     // by StreamIndex; grown on demand
  std::uint32_t named = 0;          // how many of them
  std::vector<TheirStream> theirs;  // by their index
  std::vector<StreamIndex> brought;  // streams that the link named first, perhaps held since
  TimePoint recounted_at = never;    // when `brought` was found full

  LinkStream& on(StreamIndex stream) {
    if (stream >= ours.size()) ours.resize(stream + 1);
    return ours[stream];
  }
};

struct MissingLink {
  std::uint64_t brought = 0;  // keys in Stream::missing that the link named first
};

struct AskedKey {
  LocalKey key;
  TimePoint at;
};

struct SpreadLink {
  std::vector<LocalKey> announcements;  // HAVEs not yet sent
  TimePoint announced_at{Duration{-1'000'000}};
  std::deque<AskedKey> asked;         // WANTs in flight
  std::uint64_t given = 0;            // updates that came for a WANT
  std::deque<LocalKey> to_ask;        // keys that wait for room in the window
  std::vector<LocalKey> want_batch;   // WANTs of the turn under way
  std::deque<LocalRange> to_serve;    // WANTs of the other side, not yet answered
  std::uint64_t broken_announcements = 0;  // keys it announced and had not, less one for each update it gave
};

struct RepairLink {
  std::optional<Digest> sent_digest;
  TimePoint digest_sent_at, vector_sent_at = long_ago, vector_due = never;
  std::uint32_t mismatches = 0;    // digests in a row that differ from ours
  std::uint32_t divergences = 0;   // digests in a row with equal have-set and another fingerprint
  HaveSet assembling;              // of a VECTOR in parts
  std::uint32_t vector_parts = 0;  // of it, so far
  std::optional<HaveSet> vector;   // their last complete one
  std::size_t names_bytes = 0;     // of their vectors
  std::deque<LocalRange> to_pull, pull_later;
  TimePoint pull_later_at = never;
  HaveSet gone;                         // keys in NOT_AVAILABLE
  bool equal_when_met = false;          // or it had nothing: no need to catch up
  std::optional<HaveSet> first_vector;  // until we are ready to train
};

// A cut that we serve on a link.
struct Serving {
  std::uint32_t number = 0;
  std::shared_ptr<const Cut> cut;
  TimePoint used_at;
};

// Download also sets ask_again_at.
struct JoiningLink {
  std::optional<Serving> serving;
  bool awaits_cut = false;  // it has asked, and the cut is being made
  TimePoint ask_again_at;   // it refused a snapshot
};

struct EvidenceLink {
  TimePoint headers_sent_at = long_ago;  // hashes of headers
};

struct ProbeLink {
  std::optional<std::uint64_t> nonce;  // of the probe on its way
  TimePoint sent_at;
  std::optional<Duration> data_wait;  // by the last probe that was answered while DATA flows
};

struct BroadcastLink final : LinkState {
  StreamsLink streams;
  MissingLink missing;
  SpreadLink spread;
  RepairLink repair;
  JoiningLink joining;
  EvidenceLink evidence;
  ProbeLink probe;
};

inline BroadcastLink& parts(Link& link) { return static_cast<BroadcastLink&>(*link.exchange); }
inline const BroadcastLink& parts(const Link& link) { return static_cast<const BroadcastLink&>(*link.exchange); }

}  // namespace rumor::gossip
