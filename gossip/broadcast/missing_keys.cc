#include "gossip/broadcast/missing_keys.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

Missing* MissingKeys::find(const LocalKey& key) {
  auto& list = streams_[key.stream].missing;
  const auto at = list.find(key.seq);
  return at == list.end() ? nullptr : &at->second;
}

Missing* MissingKeys::add(Link& link, const LocalKey& key) {
  Missing* entry = find(key);
  if (entry == nullptr) {
    MissingLink& its = parts(link).missing;
    if (count_ >= limits::missing_max || its.brought >= limits::missing_per_link_max) return nullptr;
    ++count_;
    ++its.brought;
    entry = &streams_[key.stream].missing[key.seq];
    entry->brought_by = link.id;
  }
  auto& from = entry->announcers;
  if (from.size() < Missing::announcers_max && std::find(from.begin(), from.end(), link.id) == from.end())
    from.push_back(link.id);
  return entry;
}

// Takes an entry that is about to go out of the counts.
void MissingKeys::forget(const Missing& entry) {
  if (!mutant(24)) --count_;
  const auto at = core_.links.find(entry.brought_by);
  if (at != core_.links.end()) --parts(at->second).missing.brought;
}

void MissingKeys::drop(const LocalKey& key) {
  auto& list = streams_[key.stream].missing;
  const auto at = list.find(key.seq);
  if (at == list.end()) return;
  forget(at->second);
  list.erase(at);
}

void MissingKeys::drop_held() {
  for (StreamIndex stream = 0; stream < streams_.size(); ++stream) {
    std::erase_if(streams_[stream].missing, [&](const auto& entry) {
      const LocalKey key{stream, entry.first};
      const bool drop = streams_.have(key) || streams_.unwanted(key);
      if (drop) forget(entry.second);
      return drop;
    });
  }
}

std::vector<std::uint64_t> MissingKeys::unasked(StreamIndex stream) const {
  std::vector<std::uint64_t> seqs;
  for (const auto& [seq, entry] : streams_[stream].missing)
    if (!entry.asked) seqs.push_back(seq);
  return seqs;
}

void MissingKeys::check_invariants() const {
  std::uint64_t missing = 0;
  for (const Stream& stream : streams_) missing += stream.missing.size();
  RUMOR_CHECK(missing == count_);
  RUMOR_CHECK(missing <= limits::missing_max);
}

}  // namespace rumor::gossip
