// UpdateLog: updates that were applied, kept so that peers who missed them can still fetch them, so that a
// cut of an earlier moment can be made, and so that a restarted process has what it had.
//
// In memory, or on a Disk with the newest payloads in memory too. Bounded by bytes and by number; the oldest
// (by arrival) go first. An update goes earlier once every member has acknowledged it and it is old enough.
// What was dropped is still applied, it just can't be served: a peer that needs it takes a snapshot. So what
// the log can carry is never lost to a peer that was away, and dropped_unacknowledged() says when it could
// not.
//
// On disk: segments log.00000001, ... of records, appended to; a segment goes when nothing in it is kept. A
// segment begins with "RUMORLG", version 1, run [16], check [8]. A record: kind u8 (1 an update, 2 an update
// that was taken back), stream [16], seq u64, origin [32], payload hash [32], fingerprint u64, period u64,
// samples u32, signature [64], payload bytes u32, check [8], payload. A check is the first 8 bytes of the
// SHA-256 of what stands before it. Of a record that is cut off or damaged neither it nor what follows in its
// segment is read; a payload is checked against its hash when it is read. A process never goes on with a
// segment of another.
//
// A disk that fails costs memory of the cache's size and, beyond that, updates to serve; trouble() says so.
//
// Thread: one owner. Payloads are shared, never copied. Memory: some 350 bytes an update, and the cache.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gossip/contract/update_store.h"
#include "runtime/base/time.h"
#include "runtime/replica/disk.h"

namespace rumor {

class UpdateLog {
 public:
  static constexpr Duration kept_at_least = 15 * 60s;  // what everybody has acknowledged

  // In memory, until open().
  explicit UpdateLog(std::size_t bytes_max, std::size_t cache_bytes_max = SIZE_MAX)
      : bytes_max_(bytes_max), cache_bytes_max_(cache_bytes_max) {}

  // From now on on `disk`, which must outlive the log, and with what its segments hold. Requires: empty.
  // Errors: Errc::mismatch when they are of another run. Returns how many bytes were damaged and left out.
  Result<std::uint64_t> open(Disk& disk, const RunId& run);

  // Requires: not in the log already.
  void append(const gossip::StoredUpdate& update, TimePoint now = {});
  // Nothing also when the disk no longer gives it back as it was.
  std::optional<gossip::StoredUpdate> find(const UpdateKey& key) const;
  const gossip::UpdateHeader* header(const UpdateKey& key) const;  // null: it is not kept
  std::size_t payload_bytes(const UpdateKey& key) const;           // Requires: contains(key)
  // Taken back: as if it had never come.
  void erase(const UpdateKey& key);
  bool contains(const UpdateKey& key) const { return updates_.contains(key); }
  // Drops what is old and in `by_all`.
  void acknowledged(const gossip::HaveSet& by_all, TimePoint now);

  // In order of arrival.
  std::vector<UpdateKey> keys() const;
  std::size_t size() const { return updates_.size(); }
  std::size_t bytes() const { return bytes_; }
  // Of payloads and names in memory; about, since the system's own part of each is unknown.
  std::size_t memory_bytes() const;
  // Dropped because of a bound, although not all members had said that they have them.
  std::uint64_t dropped_unacknowledged() const { return dropped_; }
  const std::string& trouble() const { return trouble_; }  // empty: the disk took the last record

 private:
  struct Entry {
    gossip::StoredUpdate update;  // its payload only while in the cache
    std::uint32_t bytes = 0;      // of the payload
    std::uint64_t order = 0;
    std::uint32_t segment = 0;  // 0: in memory only
    std::uint64_t offset = 0;   // of the payload
    TimePoint at;
  };
  struct Segment {
    std::uint64_t bytes = 0;
    std::size_t kept = 0;
  };

  void put(const gossip::StoredUpdate& update, std::uint32_t bytes, std::uint32_t segment,
           std::uint64_t offset, TimePoint now);
  std::uint64_t write(const gossip::UpdateHeader& header, BytesView payload);
  std::uint64_t read_segment(std::uint32_t segment);
  void remove(std::map<UpdateKey, Entry>::iterator at);
  void drop_oldest();
  void keep_bounds();

  std::size_t bytes_max_, cache_bytes_max_;
  Disk* disk_ = nullptr;
  RunId run_;
  std::size_t bytes_ = 0, cache_bytes_ = 0;
  std::uint64_t disk_bytes_ = 0, orders_ = 0, dropped_ = 0;
  std::map<UpdateKey, Entry> updates_;
  std::map<std::uint64_t, UpdateKey> arrival_;
  std::deque<UpdateKey> cached_;
  std::map<std::uint32_t, Segment> segments_;
  std::uint32_t writing_ = 0, last_segment_ = 0;  // writing_ 0: none yet
  gossip::HaveSet acknowledged_;
  std::string trouble_;
};

}  // namespace rumor
