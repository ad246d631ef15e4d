// UpdateLog: applied updates, kept for three uses. Peers that missed them fetch them, a cut of an earlier moment is
// made from them, and a restarted process goes on with them.
//
// Without a Disk all of it is in memory. With one, memory has the index (runtime/replica/log_index.h) and the newest
// updates, up to recent_bytes_max; all others are read back when somebody asks for them.
//
// The log is bounded by bytes and by number; the oldest updates (by arrival) go first. An update goes earlier once
// every member has acknowledged it and it is old enough. A dropped update is still applied, but can no longer be
// served: a peer that needs it takes a snapshot. dropped_unacknowledged() counts the updates that a bound cost.
//
// On disk: segments log.00000001, ... of records, appended to; a segment goes when nothing in it is kept. A
// segment begins with "RUMORLG", version 1, run [16], check [8]. A record: kind u8 (1 an update, 2 an update
// that was taken back), stream [16], seq u64, origin [32], payload hash [32], fingerprint u64, period u64,
// samples u32, signature [64], payload bytes u32, check [8], payload. A check is the first 8 bytes of the
// SHA-256 of all bytes before it. A record that is cut off or damaged is not read, nor are those after it in its
// segment. A record that is read back is compared with its check, its name and the hash of its payload. A process
// never goes on with a segment of another.
//
// An update that the disk does not take stays in memory. Such updates have a bound of their own, cache_bytes_max,
// beyond which the oldest of them are dropped; trouble() says why.
//
// Thread: one owner. Payloads are shared, never copied. Memory with a disk: some 40 bytes an update, and the newest.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gossip/contract/update_store.h"
#include "runtime/base/time.h"
#include "runtime/replica/disk.h"
#include "runtime/replica/log_index.h"

namespace rumor {

class UpdateLog {
 public:
  static constexpr Duration kept_at_least = 15 * 60s;       // an update that everybody has acknowledged
  static constexpr std::size_t recent_bytes_max = 8 << 20;  // of the newest updates, which are not read back
  static constexpr std::size_t overhead_bytes = 256;        // of an update beside its payload, about

  // In memory, until open(). cache_bytes_max: of updates that the disk did not take.
  explicit UpdateLog(std::size_t bytes_max, std::size_t cache_bytes_max = SIZE_MAX)
      : bytes_max_(bytes_max), cache_bytes_max_(cache_bytes_max) {}

  // From now on the log is on `disk`, which must outlive it, and has the updates of its segments. Requires: empty.
  // also_taken_back: and those that were taken back, as far as segments still have them: for a reader of the past.
  // Errors: Errc::mismatch when the segments are of another run. Returns how many bytes were damaged and left out.
  enum class Contents : std::uint8_t { kept, also_taken_back };
  Result<std::uint64_t> open(Disk& disk, const RunId& run, Contents contents = Contents::kept);

  // Requires: not in the log already.
  void append(const gossip::StoredUpdate& update, TimePoint now = {});
  // Nothing also when the disk no longer returns the update as it was written. So does header().
  std::optional<gossip::StoredUpdate> find(const UpdateKey& key) const;
  std::optional<gossip::UpdateHeader> header(const UpdateKey& key) const;
  std::size_t payload_bytes(const UpdateKey& key) const;  // Requires: contains(key)
  // The update is taken back: as if it had never come.
  void erase(const UpdateKey& key);
  bool contains(const UpdateKey& key) const { return index_.order_of(key).has_value(); }
  // Drops updates from the oldest on, while they are old and in `by_all`.
  void acknowledged(const gossip::HaveSet& by_all, TimePoint now);

  // In order of arrival.
  std::vector<UpdateKey> keys() const;
  std::size_t size() const { return index_.size(); }
  std::size_t bytes() const { return bytes_; }  // of all payloads, and overhead_bytes for each
  // Of the index and of updates in memory; about, since the allocator's own part of each is unknown.
  std::size_t memory_bytes() const;
  // Updates dropped because of a bound, although not all members had said that they have them.
  std::uint64_t dropped_unacknowledged() const { return dropped_; }
  const std::string& trouble() const { return trouble_; }  // empty: the disk took the last record

 private:
  using Order = LogIndex::Order;
  // Whole updates in memory.
  struct Held {
    std::map<Order, gossip::StoredUpdate> updates;
    std::size_t bytes = 0;

    void add(Order order, const gossip::StoredUpdate& update);
    void remove(Order order);
    bool beyond(std::size_t bytes_max) const { return bytes > bytes_max && updates.size() > 1; }
    Order oldest() const { return updates.begin()->first; }
  };
  struct Segment {
    std::uint64_t bytes = 0;
    std::size_t kept = 0;
  };

  Order put(const UpdateKey& key, const LogIndex::Place& place);
  std::uint32_t write(const gossip::UpdateHeader& header, BytesView payload);
  std::uint64_t read_segment(std::uint32_t segment, Contents contents);
  const gossip::StoredUpdate* held(Order order) const;
  Result<Bytes> read_record(Order order, std::size_t payload_bytes) const;
  std::optional<gossip::UpdateHeader> header_at(Order order, const UpdateKey& key) const;
  void remove(Order order);
  void drop(Order order);
  void keep_bounds();

  std::size_t bytes_max_, cache_bytes_max_;
  Disk* disk_ = nullptr;
  RunId run_;
  std::size_t bytes_ = 0;
  std::uint64_t disk_bytes_ = 0, dropped_ = 0;
  LogIndex index_;
  Held unwritten_;  // updates that no disk has
  Held recent_;     // the newest of those that the disk has
  std::map<std::uint32_t, Segment> segments_;
  std::uint32_t writing_ = 0, last_segment_ = 0;  // writing_ 0: none yet
  gossip::HaveSet acknowledged_;
  std::string trouble_;
};

}  // namespace rumor
