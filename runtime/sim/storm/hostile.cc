#include "runtime/sim/storm/hostile.h"

#include <algorithm>

#include "runtime/base/limits.h"
#include "runtime/sim/world/tag_keys.h"

namespace rumor::sim {

using gossip::FrameType;

namespace {

constexpr std::size_t heard_max = 48, links_wanted = 3, flood_frames = 30;

// Frames that it may pass on with flipped bits: such a frame must not do harm. A digest is not among them, since peers
// believe it.
bool may_flip(BytesView frame) {
  switch (static_cast<FrameType>(frame[0])) {
    case FrameType::digest:
    case FrameType::snapshot_data:
      return false;
    default:
      return true;
  }
}

}  // namespace

Attacker::Attacker(ProtocolWorld& world, HostId self, HostId targets, AttackKinds kinds, std::uint64_t seed)
    : world_(world),
      self_(self),
      targets_(targets),
      kinds_(kinds),
      prng_(Prng::named(seed, "attacker", self)) {
  stream_ = gossip::stream_of(world_.host(self_).id, prng_.next());
}

void Attacker::on_link_up(End end, const NodeId&) {
  Link link;
  link.end = end;
  gossip::Hello hello;
  hello.run = world_.options().model.form.run;
  hello.run_name = "sim";
  hello.stream = stream_;
  hello.self = {world_.host(self_).id, 1, {}};
  hello.self.signature = TagKeys(hello.self.node).sign(gossip::record_message(hello.run, hello.self));
  send(link, encode(hello));
  links_.emplace(key(end), std::move(link));
}

void Attacker::on_frame(End end, BytesView frame) {
  const auto at = links_.find(key(end));
  if (at == links_.end()) return;
  Link& link = at->second;
  if (may_flip(frame)) {
    heard_.emplace_back(frame.begin(), frame.end());
    if (heard_.size() > heard_max) heard_.pop_front();
  }
  const auto decoded = gossip::decode(frame);
  if (!decoded) return;
  if (std::holds_alternative<gossip::Hello>(*decoded)) link.greeted = true;
  if (const auto* ping = std::get_if<gossip::Ping>(&*decoded)) send(link, encode(gossip::Pong{ping->nonce}));
  if (const auto* named = std::get_if<gossip::StreamDef>(&*decoded))
    link.theirs[named->index] = named->stream;
  if (const auto* have = std::get_if<gossip::Have>(&*decoded)) {
    for (const gossip::WireKey& wire : have->keys) {
      const auto stream = link.theirs.find(wire.stream);
      if (stream != link.theirs.end()) heads_[stream->second] = std::max(heads_[stream->second], wire.seq);
    }
    if (kinds_.withholds) repeat_have(link, *have);
  }
}

std::uint32_t Attacker::name(Link& link, const StreamId& stream) {
  const auto [at, fresh] = link.ours.emplace(stream, static_cast<std::uint32_t>(link.ours.size()));
  if (fresh) send(link, encode(gossip::StreamDef{at->second, stream, std::nullopt}));
  return at->second;
}

// Announces updates that it does not have to all others, and answers no WANT for them.
void Attacker::repeat_have(const Link& from, const gossip::Have& have) {
  for (auto& [id, link] : links_) {
    if (&link == &from || !link.greeted) continue;
    gossip::Have mine;
    for (const gossip::WireKey& wire : have.keys) {
      const auto stream = from.theirs.find(wire.stream);
      if (stream != from.theirs.end()) mine.keys.push_back({name(link, stream->second), wire.seq});
    }
    if (!mine.keys.empty()) send(link, encode(mine));
  }
}

void Attacker::send_random(Link& link) {
  Bytes frame(1 + prng_.below(200));
  for (auto& byte : frame) byte = static_cast<std::uint8_t>(prng_.next());
  if (prng_.chance(3, 4)) frame[0] = static_cast<std::uint8_t>(1 + prng_.below(22));
  send(link, std::move(frame));
}

void Attacker::send_flipped(Link& link) {
  if (heard_.empty()) return;
  Bytes frame = heard_[prng_.below(heard_.size())];
  const std::uint64_t flips = 1 + prng_.below(3);
  for (std::uint64_t i = 0; i < flips; ++i) {
    const std::uint64_t at = prng_.below(frame.size());
    frame[at] = static_cast<std::uint8_t>(frame[at] ^ (1u << prng_.below(8)));
  }
  // A flip may turn one kind of frame into another.
  if (may_flip(frame)) send(link, std::move(frame));
}

void Attacker::send_false_have(Link& link) {
  StreamId stream;
  std::uint64_t head = 0;
  if (!heads_.empty() && prng_.chance(3, 4)) {
    auto at = heads_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(prng_.below(heads_.size())));
    stream = at->first;
    head = at->second;
  } else {
    for (auto& byte : stream.bytes) byte = static_cast<std::uint8_t>(prng_.next());
  }
  gossip::Have have;
  const std::uint32_t index = name(link, stream);
  for (std::uint64_t i = 0; i < 8; ++i) have.keys.push_back({index, head + 1 + prng_.below(50)});
  send(link, encode(have));
}

void Attacker::flood(Link& link) {
  const std::uint32_t index = heads_.empty() ? name(link, stream_) : name(link, heads_.begin()->first);
  for (std::size_t i = 0; i < flood_frames; ++i) {
    switch (prng_.below(5)) {
      case 0:
        send(link, encode(gossip::Ping{prng_.next()}));
        break;
      case 1:
        send(link, encode(gossip::Subscribe{index, prng_.chance(1, 2)}));
        break;
      case 2: {
        const std::uint64_t first = 1 + prng_.below(1000);
        send(link, encode(gossip::Want{{{index, {first, first + limits::keys_per_frame_max - 1}}}}));
        break;
      }
      case 3: {
        gossip::Have have;
        const std::size_t keys = prng_.chance(1, 64) ? limits::keys_per_frame_max : 1 + prng_.below(24);
        for (std::size_t k = 0; k < keys; ++k) have.keys.push_back({index, 1 + prng_.below(1'000'000)});
        send(link, encode(have));
        break;
      }
      default: {
        gossip::Vector vector;
        vector.reply = true;
        send(link, encode(vector));
      }
    }
  }
}

void Attacker::on_turn() {
  if (links_.size() < links_wanted && targets_ > 0)
    world_.stranger_dials(self_, static_cast<HostId>(prng_.below(targets_)));
  std::vector<std::uint64_t> open;
  for (const auto& [id, link] : links_)
    if (link.greeted) open.push_back(id);
  for (const std::uint64_t id : open) {
    Link& link = links_.at(id);
    if (kinds_.random_bytes && prng_.chance(1, 20)) send_random(link);
    if (kinds_.flipped_bits && prng_.chance(1, 4)) send_flipped(link);
    if (kinds_.false_have && prng_.chance(1, 3)) send_false_have(link);
    if (kinds_.floods && prng_.chance(1, 20)) flood(link);
  }
}

}  // namespace rumor::sim
