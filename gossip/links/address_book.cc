#include "gossip/links/address_book.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

Duration jittered(Duration d, Prng& prng) {
  return Duration(d.count() / 2 +
                  static_cast<std::int64_t>(prng.below(static_cast<std::uint64_t>(d.count()) + 1)));
}

Duration redial_wait(std::uint32_t failures, Prng& prng) {
  RUMOR_CHECK(failures >= 1);
  constexpr Duration first = 200ms, longest = 5min;
  static_assert((first.count() << 11) > longest.count());
  return jittered(std::min<Duration>(Duration(first.count() << std::min(failures - 1, 11u)), longest), prng);
}

Address* AddressBook::find(const std::string& address) {
  const auto at = addresses_.find(address);
  return at == addresses_.end() ? nullptr : &at->second;
}

void AddressBook::add_contact(const std::string& address, bool seed) {
  Address& entry = addresses_[address];
  (seed ? entry.seed : entry.known) = true;
}

void AddressBook::add_member(const std::string& address, const NodeId& node, TimePoint first_try) {
  const auto [at, fresh] = addresses_.try_emplace(address);
  if (fresh) at->second.next_try = first_try;
  if (!at->second.ours) at->second.node = node;
}

void AddressBook::failed(const std::string& address, std::string reason, TimePoint now, Prng& prng) {
  Address* entry = find(address);
  if (entry == nullptr) return;
  entry->dialling = mutant(41);
  entry->tried = true;
  entry->trouble = std::move(reason);
  ++entry->failures;
  entry->next_try = now + redial_wait(entry->failures, prng);
  if (entry->failures > known_failures_max) entry->known = false;
}

void AddressBook::retry_node(const NodeId& node, TimePoint at) {
  for (auto& [address, entry] : addresses_) {
    if (entry.node == node) entry.next_try = at;
  }
}

void AddressBook::network_is_back(TimePoint now, Prng& prng) {
  for (auto& [address, entry] : addresses_) {
    if (entry.failures == 0 || entry.next_try <= now + 10s) continue;
    entry.next_try = now + Duration(static_cast<std::int64_t>(prng.below(10'000'000)));
  }
}

}  // namespace rumor::gossip
