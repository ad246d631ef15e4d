// UpdateLog: recent updates, kept so that peers who missed them can still fetch them.
//
// Bounded by payload bytes; the oldest (by arrival) go first. What was trimmed is still applied, it just
// can't be served: a peer that needs it takes a snapshot.
//
// Thread: one owner. Payloads are shared, never copied.
#pragma once

#include <deque>
#include <map>
#include <optional>

#include "gossip/update_store.h"

namespace rumor {

class UpdateLog {
 public:
  explicit UpdateLog(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Requires: not in the log already.
  void append(const gossip::StoredUpdate& update);
  std::optional<gossip::StoredUpdate> find(const UpdateKey& key) const;
  // Gone, as if it had been trimmed.
  void erase(const UpdateKey& key);
  bool contains(const UpdateKey& key) const { return updates_.contains(key); }

  // The newest updates, oldest of them first, up to `bytes_max` of payload.
  std::vector<gossip::StoredUpdate> tail(std::size_t bytes_max) const;
  // All, in order of arrival.
  std::vector<gossip::StoredUpdate> all() const { return tail(SIZE_MAX); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::map<UpdateKey, gossip::StoredUpdate> updates_;
  std::deque<UpdateKey> arrival_;
};

}  // namespace rumor
