// Core: what the parts of the protocol share: links, streams, the time and the outbox of the call under way.
//
// Overlay, Spread, Repair and Joining each own their decisions; a Link carries the state that each of them
// keeps about it. Nobody removes a link inside a handler: close() marks it, and Protocol detaches it when the
// handler is done, so pointers and loops stay good.
//
// Thread: one owner, as Protocol. Memory: a Link's lists are bounded as PROTOCOL.md section 8 says.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gossip/contract/events.h"
#include "gossip/contract/update_store.h"
#include "gossip/links/address_book.h"
#include "gossip/links/figures.h"
#include "gossip/links/members.h"
#include "gossip/links/options.h"
#include "gossip/links/origin_pace.h"
#include "gossip/links/peer_scores.h"
#include "gossip/wire/wire.h"
#include "runtime/base/limits.h"
#include "runtime/base/prng.h"
#include "runtime/base/time.h"

namespace rumor::gossip {

// Our number of a stream, dense from 0; not the index on any wire.
using StreamIndex = std::uint32_t;

// A key by our number of its stream.
struct LocalKey {
  StreamIndex stream = 0;
  std::uint64_t seq = 0;
};

// One stream on one link.
struct LinkStream {
  SeqRanges known;              // one side has told the other: neither DATA nor HAVE is due
  std::uint32_t our_index = 0;  // on this link
  bool named = false;           // we have sent STREAM
  bool origin_named = false;    // with the origin
  bool push_to_them = false;    // they subscribed
  TimePoint declined_at = never;  // they no longer push it to us; never: they have not said so
  TimePoint we_declined_at = never;
  bool depends = false;  // they subscribed again: they have it from nobody else
};

// What the other side's STREAM said.
struct TheirStream {
  StreamIndex stream = 0;
  std::optional<NodeId> origin;
};

struct AskedKey {
  LocalKey key;
  TimePoint at;
};

struct LocalRange {
  StreamIndex stream = 0;
  SeqRange range;
};

// A cut that we serve on a link.
struct Serving {
  std::uint32_t number = 0;
  std::shared_ptr<const Cut> cut;
  TimePoint used_at;
};

// A payload that arrives in pieces: its DATA, and the bytes so far.
struct Arriving {
  Data head;
  Bytes bytes;
  bool lacked = false;  // when it began
};

struct Link {
  enum class State : std::uint8_t { greeting, admitted, closing };

  LinkId id{};
  NodeId node;
  bool dialled_by_us = false;
  std::string address;
  State state = State::greeting;
  bool was_admitted = false, detached = false;
  std::string close_reason;
  bool greeted = false;   // we have sent HELLO
  bool observer = false;  // it may not bring updates of its own
  Purpose purpose = Purpose::link;  // where we have dialled
  bool goodbye = false;  // BYE came: no reason to redial at once
  TimePoint up_at, admitted_at, heard_at, sent_at;
  StreamId their_stream;  // of their process
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  std::uint32_t table_mismatches = 0;
  TimePoint table_sent_at;
  TimePoint invite_passed_at = long_ago;  // one of its own, by us
  std::optional<std::uint64_t> ping;  // nonce of the one on its way, probes aside
  TimePoint ping_sent_at;
  std::optional<Duration> round_trip;  // of the last PING that was answered, probes aside

  // QueueProbe
  bool live_sent = false;              // DATA, since the last probe
  std::optional<std::uint64_t> probe;  // nonce of the one on its way
  TimePoint probe_sent_at;
  std::optional<Duration> data_wait;  // by the last one answered while DATA flows

  // Spread
  std::vector<LinkStream> streams;  // by StreamIndex; grown on demand
  std::uint32_t streams_named = 0;
  std::vector<TheirStream> their_streams;  // by their index
  std::vector<LocalKey> announcements;     // HAVEs not yet sent
  TimePoint announced_at{Duration{-1'000'000}};
  std::deque<AskedKey> asked;        // WANTs in flight
  std::uint64_t given = 0;           // updates that came for a WANT
  std::deque<LocalKey> to_ask;       // waiting for room in the window
  std::vector<LocalKey> want_batch;  // of the call under way
  TimePoint data_at;                 // last DATA from it
  TimePoint progress_at;             // last DATA from it that we lacked
  std::deque<LocalRange> to_serve;   // WANTs not yet answered
  std::optional<Arriving> arriving;
  bool backlogged = false;
  TimePoint backlog_ended = never;    // never: there was none
  std::unique_ptr<LinkCoder> coder;
  std::uint32_t codings = 0;          // what the other side decodes
  std::uint32_t providing = 0;  // streams that it pushes to us
  std::uint32_t taking = 0;     // streams that we push to it

  // What it may make us keep and do (bounds.cc)
  std::vector<StreamIndex> brought;  // streams that it named first, perhaps held since
  TimePoint recounted_at = never;    // `brought` was found full
  std::uint64_t missing_brought = 0;       // keys in Stream::missing that it named first
  std::uint64_t broken_announcements = 0;  // and then had not, less one for each update it gave
  std::uint64_t control_left = limits::control_burst;
  TimePoint control_at;         // control_left is of then
  std::size_t names_bytes = 0;  // of its vectors

  // Repair
  std::optional<Digest> digest;  // their last
  ReplicaDigest hello_replica;   // ours, as we said it in HELLO
  std::optional<Digest> sent_digest;
  TimePoint digest_sent_at, vector_sent_at = long_ago, vector_due = never;
  std::uint32_t mismatches = 0;   // digests in a row that differ from ours
  std::uint32_t divergences = 0;  // digests in a row with equal have-set and another fingerprint
  HaveSet assembling;             // of a VECTOR in parts
  std::uint32_t parts = 0;
  std::optional<HaveSet> vector;  // their last complete one
  TimePoint headers_sent_at = long_ago;  // we sent it hashes of headers
  std::deque<LocalRange> to_pull, pull_later;
  TimePoint pull_later_at = never;
  HaveSet gone;                         // they said NOT_AVAILABLE
  bool equal_when_met = false;          // or it had nothing: no need to catch up
  std::optional<HaveSet> first_vector;  // until we are ready to train

  // Joining
  std::optional<Serving> serving;
  bool awaits_cut = false;  // it has asked, and the cut is being made
  TimePoint ask_again_at;  // they refused a snapshot

  bool admitted() const { return state == State::admitted; }
  LinkStream& on(StreamIndex stream) {
    if (stream >= streams.size()) streams.resize(stream + 1);
    return streams[stream];
  }
};

// A key that we lack and that somebody has announced.
struct Missing {
  static constexpr std::size_t announcers_max = 4;
  std::vector<LinkId> announcers;
  std::optional<LinkId> asked;  // WANT in flight there
  LinkId brought_by{};          // it counts as that link's
  std::uint8_t strikes = 0;
};

struct Stream {
  StreamId id;
  std::optional<NodeId> origin;
  std::optional<LinkId> provider;
  std::uint64_t provider_head = 0;           // highest seq that the provider has delivered
  std::uint64_t flow_bytes = 0;              // payloads of the last seconds
  bool refused = false;                      // of a node that was put out, and nothing of it is ours: never asked for
  std::map<std::uint64_t, Missing> missing;  // by seq
};

// Those that a record may hold: others would take one with any other for malformed.
std::vector<std::string> fit_addresses(const NodeId& self, std::vector<std::string> addresses);

class Core {
 public:
  Core(Options options_in, UpdateStore& store_in, Prng prng_in);

  // The outbox of the call under way. Requires: inside a handler of Protocol.
  void begin(TimePoint time, Outbox& out);
  void end() { out_ = nullptr; }

  // ---- effects ----
  void send(Link& link, OutFrame frame);  // nothing on a closing link
  void send(Link& link, OutFrame frame, Lane lane);
  void close(Link& link, std::string reason);
  // For what no honest peer does: its node is not linked again for a while.
  void ban(Link& link, std::string reason);
  // For what only costs us: not linked for ten minutes.
  void shun(Link& link, std::string reason);
  void dial(const std::string& address) { out_->push_back(Dial{address}); }
  void note(Note::Level level, std::string text) { out_->push_back(Note{level, std::move(text)}); }

  // ---- lookups ----
  Link* find(LinkId link);  // admitted links only
  Link* find(std::optional<LinkId> link) { return link ? find(*link) : nullptr; }
  Link* link_to(const NodeId& node);  // admitted, the oldest; null if none
  std::size_t admitted_count() const;
  // For every admitted link, in order of id.
  template <class Visit>
  void each_link(Visit visit) {
    for (auto& [id, link] : links) {
      if (link.admitted()) visit(link);
    }
  }

  // Our number of a stream; nothing when the table is full.
  std::optional<StreamIndex> intern(const StreamId& stream);
  // For a name that comes from `link`: also nothing when that has named too many of which we hold nothing.
  std::optional<StreamIndex> intern(Link& link, const StreamId& stream);
  // Forgets the streams that only this link has spoken of, so that others may have their numbers. Requires: it is
  // detached.
  void forget_brought(Link& link);
  // Books control work for a link; false, and closed, when it asks for more than its share.
  bool charge(Link& link, std::uint64_t units);
  // Closes the link whose vectors take most while all together take too much.
  void bound_names();
  UpdateKey key_of(const LocalKey& key) const { return {streams[key.stream].id, key.seq}; }
  bool have(const LocalKey& key) const { return store.have().contains(key_of(key)); }
  // Not held and not to be asked for: taken back, of a stream that is refused, or named after our own stream
  // beyond what we have published, which only a liar can do.
  bool unwanted(const LocalKey& key) const;
  // What is left of `set` without such.
  HaveSet wanted(const HaveSet& set) const;
  // What is left of `set` without what the owner has taken back and we could not.
  HaveSet keepable(HaveSet set) const;
  // Looks at every stream again, after `rule` or the revocations have changed.
  void mark_refused();
  std::int64_t unix_now() const { return options.unix_start + (now.time_since_epoch() / Duration{1s}); }

  // The index of a stream on a link; sends STREAM first if it is new there.
  std::uint32_t name_stream(Link& link, StreamIndex stream, bool with_origin);

  // What we say of ourselves at this moment.
  Digest digest(bool reply = false) const { return {store.digest(), members.hash(), finished, reply}; }

  // The have-set changed just now.
  void changed();
  // Of update frames, for windows and offers.
  std::uint64_t mean_update_bytes() const { return mean_update_bytes_; }
  // Each update still tells much about the mean.
  bool learns_update_bytes() const { return updates_counted_ < updates_averaged; }
  void count_update(std::size_t payload_bytes);

  const Options options;  // texts and addresses made fit for frames
  AdmissionRule rule;     // as it is now
  UpdateStore& store;
  Prng prng;
  const Keys& keys;
  MemberTable members;
  PeerScores scores;
  Counters counters;
  OriginPace pace;
  TimePoint now{};
  bool finished = false;

  std::map<LinkId, Link> links;
  std::vector<Stream> streams;
  std::uint64_t missing_total = 0;  // over all streams
  std::uint64_t published = 0;      // the newest own update
  TimePoint changed_at = long_ago,
            changed_since = never;  // last change; first one not yet in a digest
  std::string divergence;
  std::map<UpdateKey, Hash256> proven;  // signed twice: the header hash that everybody keeps
  std::vector<UpdateHeader> suspects;   // for Evidence, within a call
  std::map<NodeId, HaveSet>
      held_by;  // what members have said that they hold, for the rule of acknowledgement
  std::set<Revocation> cannot_revoke;  // the owner's word, about updates that our log no longer has

 private:
  bool refused(const StreamId& stream) const;

  Outbox* out_ = nullptr;
  std::vector<bool> numbers_in_use() const;
  bool holds(StreamIndex stream) const { return store.have().streams().contains(streams[stream].id); }

  std::map<StreamId, StreamIndex> stream_numbers_;
  std::vector<StreamIndex> free_streams_;  // numbers to be used again
  static constexpr std::uint64_t updates_averaged = 16;
  std::uint64_t mean_update_bytes_ = 0, updates_counted_ = 0;  // updates_averaged at most
};

}  // namespace rumor::gossip
