#include "gossip/buffers/shared_buffers.h"

#include <algorithm>
#include <utility>

#include "gossip/trust/signing.h"
#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

std::uint64_t short_hash(const Hash256& hash) { return ByteReader(hash.view()).u64(); }

}  // namespace

void SharedBuffers::admitted(const Link& link) {
  Pending& pending = links_[link.id];
  for (const auto& [node, held] : held_) pending.nodes.insert(node);
  waiting_ = !held_.empty();
}

void SharedBuffers::on_buffers(Link& link, const Buffers& message) {
  const auto held = held_.find(message.node);
  if (held != held_.end() && message.number < held->second.number) return;
  if (core_.rule.refused.contains(message.node) || !has_room_for(message)) return;
  const Bytes said = buffers_message(core_.options.run, message);
  const Hash256 hash = sha256(said);
  const bool equal_number = held != held_.end() && message.number == held->second.number;
  if (equal_number && !(hash < held->second.hash)) return;
  if (!core_.charge(link, 2)) return;  // as a record to verify
  if (!core_.keys.verify(message.node, said, message.signature))
    return core_.ban(link, str("sends buffers that ", message.node.brief(), " has not signed"));
  if (message.node != core_.options.self) return hold(message, hash, &link);
  // From an earlier life of ours, which counted from 1 as well: what we share gets a greater number.
  number_ = message.number;
  if (held != held_.end()) share(values_of(held->second), held->second.progress);
}

bool SharedBuffers::has_room_for(const Buffers& message) const {
  const auto held = held_.find(message.node);
  const std::size_t before = held == held_.end() ? 0 : held->second.frame->size();
  return bytes_ - before + message.values.size() <= limits::buffers_all_bytes_max &&
         held_.size() + (held == held_.end() ? 1 : 0) <= limits::buffers_nodes_max;
}

Bytes SharedBuffers::values_of(const Held& held) {
  return {held.frame->begin() + static_cast<std::ptrdiff_t>(held.values_at), held.frame->end()};
}

void SharedBuffers::share(Bytes values, std::uint64_t progress) {
  Buffers ours{core_.options.self, ++number_, progress, {}, values};
  RUMOR_CHECK(!ours.invalid());
  const Bytes said = buffers_message(core_.options.run, ours);
  ours.signature = core_.keys.sign(said);
  hold(ours, sha256(said), nullptr);
}

void SharedBuffers::hold(const Buffers& message, const Hash256& hash, const Link* from) {
  Held& held = held_[message.node];
  if (held.frame) {
    core_.buffers_hash ^= short_hash(held.hash);
    bytes_ -= held.frame->size();
  }
  auto frame = std::make_shared<const Bytes>(encode(message));
  const std::size_t values_at = frame->size() - message.values.size();
  held = {message.number, message.progress, hash, std::move(frame), values_at};
  core_.buffers_hash ^= short_hash(hash);
  bytes_ += held.frame->size();
  core_.each_link([&](const Link& link) {
    if (&link != from) links_[link.id].nodes.insert(message.node);
  });
  waiting_ = true;
}

void SharedBuffers::flush() {
  due_ = never;
  if (!std::exchange(waiting_, false)) return;
  core_.each_link([&](Link& link) {
    Pending& pending = links_[link.id];
    while (!link.backlogged && !pending.nodes.empty() && pending.at <= core_.now) {
      const auto& frame = held_.at(*pending.nodes.begin()).frame;
      pending.nodes.erase(pending.nodes.begin());
      pending.at = core_.now + Duration{1s} * static_cast<std::int64_t>(frame->size()) / bytes_per_second;
      OutFrame out;
      out.head = {frame->front()};
      out.shared = frame;
      out.begin = 1;
      out.count = frame->size() - 1;
      core_.send(link, std::move(out));
    }
    if (pending.nodes.empty()) return;
    waiting_ = true;
    if (!link.backlogged) due_ = std::min(due_, pending.at);
  });
}

bool SharedBuffers::has_converged(const Link& link) const {
  if (link.digest->buffers != 0) return link.digest->buffers == core_.buffers_hash;
  const auto pending = links_.find(link.id);
  return pending == links_.end() || pending->second.nodes.empty();
}

NodeBuffers SharedBuffers::all() const {
  NodeBuffers all;
  for (const auto& [node, held] : held_)
    if (!core_.rule.refused.contains(node)) all[node] = {held.progress, values_of(held)};
  return all;
}

}  // namespace rumor::gossip
