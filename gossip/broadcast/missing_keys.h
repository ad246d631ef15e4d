// MissingKeys: the keys that we lack and that somebody has announced, with the links that have announced each.
//
// It knows which keys are missing and counts them; Spread decides which link to ask for each, and when to ask another
// (spread_pull.cc). A key comes in with the first link that names it, and goes when the update is here, is no longer
// wanted, or cannot be had from anybody. Keys beyond the limits are not noted: digest and vector find them later.
//
// BroadcastState owns it. Thread: one owner, as Protocol. Memory: limits::missing_max entries, in Stream::missing; of
// these limits::missing_per_link_max that one link has brought.
#pragma once

#include <cstdint>
#include <vector>

#include "gossip/broadcast/link_parts.h"
#include "gossip/broadcast/streams.h"

namespace rumor::gossip {

class MissingKeys {
 public:
  // Both must outlive it.
  MissingKeys(Core& core, Streams& streams) : core_(core), streams_(streams) {}

  // The entry of a key; null when it is not missing. Good until the key is dropped.
  Missing* find(const LocalKey& key);
  // Notes that the link has announced the key, which we lack. Null when the key is new and there are too many.
  Missing* add(Link& link, const LocalKey& key);
  void drop(const LocalKey& key);
  // Drops keys that are held or unwanted by now. Call it after the have-set has changed other than by an update.
  void drop_held();

  // The missing seqs of a stream that no link has been asked for, ascending.
  std::vector<std::uint64_t> unasked(StreamIndex stream) const;
  // Over all streams.
  std::uint64_t count() const { return count_; }
  void check_invariants() const;

 private:
  void forget(const Missing& entry);

  Core& core_;
  Streams& streams_;
  std::uint64_t count_ = 0;
};

}  // namespace rumor::gossip
