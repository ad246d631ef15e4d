// The part of Core that bounds what a link may make us keep and do (PROTOCOL.md, section 8).
#include <algorithm>

#include "gossip/links/core.h"
#include "runtime/base/check.h"

namespace rumor::gossip {

std::optional<StreamIndex> Core::intern(Link& link, const StreamId& stream) {
  const auto at = stream_numbers_.find(stream);
  if (at != stream_numbers_.end()) return at->second;
  if (link.brought.size() >= limits::streams_per_link_max) {
    if (link.recounted_at == now) return std::nullopt;  // once a call
    std::erase_if(link.brought, [&](StreamIndex one) { return holds(one); });
    if (link.brought.size() >= limits::streams_per_link_max) link.recounted_at = now;
    if (link.recounted_at == now) return std::nullopt;
  }
  const auto number = intern(stream);
  if (number) link.brought.push_back(*number);
  return number;
}

// By links that are not detached.
std::vector<bool> Core::numbers_in_use() const {
  std::vector<bool> used(streams.size());
  const auto mark = [&](const auto& list) {
    for (const auto& one : list) used[one.stream] = true;
  };
  for (const auto& [id, link] : links) {
    if (link.detached) continue;
    mark(link.their_streams);
    mark(link.announcements);
    mark(link.to_ask);
    mark(link.to_serve);
    mark(link.to_pull);
    mark(link.pull_later);
    for (const AskedKey& asked : link.asked) used[asked.key.stream] = true;
  }
  return used;
}

void Core::forget_brought(Link& link) {
  RUMOR_CHECK(link.detached);
  const std::vector<StreamIndex> brought = std::move(link.brought);
  link.brought.clear();
  if (brought.empty()) return;
  const std::vector<bool> used = numbers_in_use();
  std::vector<bool> left(streams.size());  // still somebody's
  for (const StreamIndex number : brought) {
    Stream& stream = streams[number];
    if (holds(number)) continue;
    if (used[number] || stream.provider || !stream.missing.empty()) {
      left[number] = true;
      continue;
    }
    stream_numbers_.erase(stream.id);
    stream = {};
    free_streams_.push_back(number);
    for (auto& [id, other] : links)
      if (number < other.streams.size()) other.streams[number] = {};
  }
  for (auto& [id, other] : links) {
    if (other.detached) continue;
    for (const TheirStream& theirs : other.their_streams) {
      if (!left[theirs.stream]) continue;
      left[theirs.stream] = false;
      other.brought.push_back(theirs.stream);
    }
  }
}

bool Core::charge(Link& link, std::uint64_t units) {
  const auto elapsed_ms = static_cast<std::uint64_t>((now - link.control_at) / Duration{1ms});
  if (elapsed_ms > 0) {
    const std::uint64_t earned = std::min<std::uint64_t>(elapsed_ms, 60'000) * limits::control_per_second / 1'000;
    link.control_left = std::min(link.control_left + earned, limits::control_burst);
    link.control_at = now;
  }
  if (units > link.control_left) {
    shun(link, "asks for more work than a link may");
    return false;
  }
  link.control_left -= units;
  return true;
}

void Core::bound_names() {
  const std::size_t own = store.have().memory_bytes();
  std::size_t total = 0, allowed = limits::names_bytes_max;
  Link* largest = nullptr;
  each_link([&](Link& link) {
    total += link.names_bytes;
    allowed += own;
    if (largest == nullptr || link.names_bytes > largest->names_bytes) largest = &link;
  });
  if (total > allowed) close(*largest, "names more updates than there is room for");
}

}  // namespace rumor::gossip
