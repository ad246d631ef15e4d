// Streams: the streams that anybody has spoken of, their numbers here and on each link, which of their updates both
// ends of a link know, and which this replica wants.
//
// A link that names streams uses up a share of the table (PROTOCOL.md, section 8): a name that nothing came of is
// forgotten with the link that brought it.
//
// Thread: one owner, as Protocol. Memory: limits::streams_max streams.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "gossip/links/core.h"

namespace rumor::gossip {

// Our number of a stream, dense from 0; not the index on any wire.
using StreamIndex = std::uint32_t;

// A key by our number of its stream.
struct LocalKey {
  StreamIndex stream = 0;
  std::uint64_t seq = 0;
};

struct LocalRange {
  StreamIndex stream = 0;
  SeqRange range;
};

// A key that we lack and that somebody has announced. MissingKeys' and Spread's.
struct Missing {
  static constexpr std::size_t announcers_max = 4;
  std::vector<LinkId> announcers;
  std::optional<LinkId> asked;  // a WANT is in flight there
  LinkId brought_by{};          // it counts as that link's
  std::uint8_t strikes = 0;
};

struct Stream {
  StreamId id;
  std::optional<NodeId> origin;
  // Spread's.
  std::optional<LinkId> provider;
  std::uint64_t provider_head = 0;  // highest seq that the provider has delivered
  std::uint64_t flow_bytes = 0;     // payloads of the last seconds
  // Of a node that was put out, and we hold nothing of it: never asked for.
  bool refused = false;
  std::map<std::uint64_t, Missing> missing;  // by seq; MissingKeys'
};

class Streams {
 public:
  static constexpr std::size_t known_ranges_max = 64;  // of a stream on a link

  // Numbers our own stream, before any peer could fill the table.
  explicit Streams(Core& core);

  Stream& operator[](StreamIndex number) { return streams_[number]; }
  const Stream& operator[](StreamIndex number) const { return streams_[number]; }
  std::size_t size() const { return streams_.size(); }
  auto begin() { return streams_.begin(); }
  auto end() { return streams_.end(); }
  auto begin() const { return streams_.begin(); }
  auto end() const { return streams_.end(); }

  // ---- numbers ----
  // Our number of a stream; nothing when the table is full.
  std::optional<StreamIndex> intern(const StreamId& stream);
  // For a name that comes from `link`: also nothing when that has named too many of which we hold nothing.
  std::optional<StreamIndex> intern(Link& link, const StreamId& stream);
  // Takes the name and the origin that the link gives to an index. Closes the link when an honest peer would not give
  // them.
  void define(Link& link, const StreamDef& message);
  // The stream behind a link's index. Nothing, and the link is closed, when it has not defined the index.
  std::optional<StreamIndex> resolve(Link& link, std::uint32_t wire_index);
  // Our index of a stream on a link; sends STREAM first if it is new there.
  std::uint32_t name_on(Link& link, StreamIndex stream, bool with_origin);
  // Forgets the streams that only this link has spoken of, so that others may have their numbers. Requires: it is
  // detached.
  void forget_brought(Link& link);

  // ---- keys that both ends of a link know, since one has named them to the other ----
  void know(Link& link, const LocalKey& key);
  void know(Link& link, const HaveSet& set);
  bool is_known(Link& link, const LocalKey& key);

  // ---- keys that are wanted ----
  UpdateKey key_of(const LocalKey& key) const { return {streams_[key.stream].id, key.seq}; }
  bool have(const LocalKey& key) const { return core_.store.have().contains(key_of(key)); }
  // Whether a key is neither held nor to be asked for: taken back, of a stream that is refused, or named after our own
  // stream beyond what we have published, which only a liar can do.
  bool unwanted(const LocalKey& key) const;
  // `set` without its unwanted keys.
  HaveSet wanted(const HaveSet& set) const;
  // `set` without the updates that were taken back and that we could not take back.
  HaveSet keepable(HaveSet set) const;
  // Looks at every stream again, after Core::rule, `proven` or the revocations have changed.
  void mark_refused();

  // Names that were signed twice: the hash of the header that everybody keeps. Evidence adds to them.
  std::map<UpdateKey, Hash256> proven;
  // Revocations of updates that our log no longer has. Revoking's.
  std::set<Revocation> cannot_revoke;

 private:
  bool refused(const StreamId& stream) const;
  bool holds(StreamIndex stream) const { return core_.store.have().streams().contains(streams_[stream].id); }
  std::vector<bool> numbers_in_use() const;

  Core& core_;
  std::vector<Stream> streams_;
  std::map<StreamId, StreamIndex> numbers_;
  std::vector<StreamIndex> free_;  // numbers to be used again
};

}  // namespace rumor::gossip
