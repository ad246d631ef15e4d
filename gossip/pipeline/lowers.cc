#include "gossip/pipeline/lowers.h"

#include <utility>

namespace rumor::gossip {

std::vector<Slot> Lowers::remove(LinkId link) {
  std::vector<Slot> slots;
  for (const auto& [transfer, slot] : lowers_.at(link).held) slots.push_back(slot);
  lowers_.erase(link);
  return slots;
}

Lowers::Taken Lowers::take(LinkId link, const Activations& piece) {
  Lower& lower = lowers_.at(link);
  if (piece.begin) {
    if (lower.arriving) return {"a transfer within another", {}};
    if (piece.transfer != lower.begun + 1) return {"a transfer out of turn", {}};
    if (piece.transfer > lower.said) return {"a transfer beyond its credit", {}};
    if (piece.begin->bytes > bytes_max_) return {"a transfer that is too long", {}};
    lower.begun = piece.transfer;
    lower.arriving = Arrived{piece.transfer, *piece.begin, {}};
  } else if (!lower.arriving || lower.arriving->transfer != piece.transfer) {
    return {"a piece of no transfer", {}};
  }
  Arrived& arriving = *lower.arriving;
  arriving.bytes.insert(arriving.bytes.end(), piece.bytes.begin(), piece.bytes.end());
  const std::size_t all = arriving.begin.bytes;
  if (arriving.bytes.size() > all || (arriving.bytes.size() < all) != piece.more)
    return {"pieces that do not fit their length", {}};
  if (piece.more) return {};
  return {{}, *std::exchange(lower.arriving, std::nullopt)};
}

std::optional<Slot> Lowers::find(LinkId link, std::uint64_t transfer) const {
  const auto& held = lowers_.at(link).held;
  const auto at = held.find(transfer);
  return at == held.end() ? std::nullopt : std::optional(at->second);
}

std::vector<std::pair<LinkId, std::uint64_t>> Lowers::take_credits(bool is_open) {
  std::vector<std::pair<LinkId, std::uint64_t>> credits;
  if (!is_open) return credits;
  for (auto& [link, lower] : lowers_) {
    if (lower.limit > lower.said) credits.emplace_back(link, lower.said = lower.limit);
  }
  return credits;
}

}  // namespace rumor::gossip
