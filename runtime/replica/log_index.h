// LogIndex: where a log keeps each of its updates, by arrival and by name.
//
// An update has an order: the number of its arrival, counted from 0 and never used twice.
//
// Thread: one owner. Memory: 37 bytes an update where the numbers of a stream follow one another, 350 where they are at
// least 64 apart. An update that is removed out of turn keeps 32 bytes until all earlier ones are removed, too.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "runtime/base/time.h"
#include "runtime/base/types.h"

namespace rumor {

class LogIndex {
 public:
  using Order = std::uint64_t;

  struct Place {
    TimePoint at;               // when the update arrived
    std::uint32_t bytes = 0;    // of the payload
    std::uint32_t segment = 0;  // 0: the update is in memory only
    std::uint32_t offset = 0;   // of the payload within its segment
  };

  // Requires: `key` is not in the index.
  Order add(const UpdateKey& key, const Place& place);
  // Requires: `order` is in the index. So do place_of() and key_of().
  void remove(Order order);

  std::optional<Order> order_of(const UpdateKey& key) const;
  Place place_of(Order order) const;
  UpdateKey key_of(Order order) const;

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Order oldest() const { return first_; }  // Requires: not empty
  // Arrivals from the oldest update on, with those that are removed.
  std::size_t arrivals() const { return entries_.size(); }
  std::size_t memory_bytes() const;

  // call(order), in order of arrival. Requires: `call` changes nothing here.
  template <class Call>
  void each(Call&& call) const {
    for (std::size_t e = 0; e < entries_.size(); ++e)
      if (entries_[e].block != nullptr) call(first_ + e);
  }

 private:
  static constexpr std::uint64_t block_seqs = 64;
  // The sequence numbers from block_seqs * number on.
  using BlockName = std::pair<StreamId, std::uint64_t>;
  struct Block {
    std::uint64_t kept = 0;                              // one bit a sequence number
    std::array<std::uint32_t, block_seqs> arrival = {};  // the lower half of the order
  };
  using Blocks = std::map<BlockName, Block>;

  struct Entry {
    Blocks::value_type* block = nullptr;  // null: the update is removed
    std::int64_t at = 0;                  // ticks of TimePoint
    std::uint32_t bytes = 0, segment = 0, offset = 0;
    std::uint8_t within_block = 0;
  };
  static_assert(sizeof(Entry) == 32);

  const Entry& entry(Order order) const;

  Blocks blocks_;
  std::deque<Entry> entries_;  // ascending by order, without gaps; the first one is not removed
  Order first_ = 0;            // of entries_
  std::size_t size_ = 0;
};

}  // namespace rumor
