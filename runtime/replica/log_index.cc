#include "runtime/replica/log_index.h"

#include "runtime/base/check.h"

namespace rumor {

LogIndex::Order LogIndex::add(const UpdateKey& key, const Place& place) {
  Blocks::value_type& block = *blocks_.try_emplace(BlockName(key.stream, key.seq / block_seqs)).first;
  const auto within = static_cast<std::uint8_t>(key.seq % block_seqs);
  RUMOR_CHECK((block.second.kept >> within & 1) == 0);
  const Order order = first_ + entries_.size();
  block.second.kept |= std::uint64_t{1} << within;
  block.second.arrival[within] = static_cast<std::uint32_t>(order);
  entries_.push_back({&block, place.at.time_since_epoch().count(), place.bytes, place.segment, place.offset, within});
  ++size_;
  return order;
}

void LogIndex::remove(Order order) {
  Entry& removed = entries_[order - first_];
  RUMOR_CHECK(removed.block != nullptr);
  Block& block = removed.block->second;
  block.kept &= ~(std::uint64_t{1} << removed.within_block);
  if (block.kept == 0) blocks_.erase(removed.block->first);
  removed.block = nullptr;
  --size_;
  for (; !entries_.empty() && entries_.front().block == nullptr; ++first_) entries_.pop_front();
}

std::optional<LogIndex::Order> LogIndex::order_of(const UpdateKey& key) const {
  const auto block = blocks_.find(BlockName(key.stream, key.seq / block_seqs));
  const std::uint64_t within = key.seq % block_seqs;
  if (block == blocks_.end() || (block->second.kept >> within & 1) == 0) return {};
  // Fewer than 2^32 arrivals are kept, so the lower half tells them apart.
  const std::uint32_t after_first = block->second.arrival[within] - static_cast<std::uint32_t>(first_);
  return first_ + after_first;
}

const LogIndex::Entry& LogIndex::entry(Order order) const {
  const Entry& found = entries_[order - first_];
  RUMOR_CHECK(found.block != nullptr);
  return found;
}

LogIndex::Place LogIndex::place_of(Order order) const {
  const Entry& found = entry(order);
  return {TimePoint{Duration{found.at}}, found.bytes, found.segment, found.offset};
}

UpdateKey LogIndex::key_of(Order order) const {
  const Entry& found = entry(order);
  const auto& [stream, number] = found.block->first;
  return {stream, number * block_seqs + found.within_block};
}

std::size_t LogIndex::memory_bytes() const {
  constexpr std::size_t node_bytes = 4 * sizeof(void*);  // of a map, beside its value
  return entries_.size() * sizeof(Entry) + blocks_.size() * (sizeof(Blocks::value_type) + node_bytes);
}

}  // namespace rumor
