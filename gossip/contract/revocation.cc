#include "gossip/contract/revocation.h"

#include <algorithm>

#include "gossip/contract/stream_name.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

bool revocation_by_stream(const UpdateKey& one, const UpdateKey& other) { return one.stream < other.stream; }

}  // namespace

Revocation Revocation::withdrawal(const NodeId& node, const UpdateKey& first) {
  return {node, first.stream, {first.seq, seq_max}, {}, Kind::withdrawn};
}

Revocation Revocation::proof(const NodeId& node, const UpdateKey& false_update, std::vector<UpdateKey> kept) {
  if (false_update.seq > 1) {
    const UpdateKey before{false_update.stream, false_update.seq - 1};
    kept.insert(std::lower_bound(kept.begin(), kept.end(), before, revocation_by_stream), before);
  }
  Revocation made{node, {}, {1, seq_max}, {}, Kind::proven, false_update, std::move(kept)};
  RUMOR_CHECK(!made.invalid());
  return made;
}

std::optional<SeqRange> Revocation::part_of(const StreamId& other) const {
  if (!stream.is_zero()) return stream == other ? std::optional(range) : std::nullopt;
  if (!stream_belongs_to(other, node)) return std::nullopt;
  const auto stays = std::lower_bound(kept.begin(), kept.end(), UpdateKey{other, 0}, revocation_by_stream);
  if (stays == kept.end() || stays->stream != other) return range;
  if (stays->seq == seq_max) return std::nullopt;
  return SeqRange{stays->seq + 1, seq_max};
}

bool Revocation::covers(const UpdateKey& key) const {
  const auto part = part_of(key.stream);
  return part && part->first <= key.seq && key.seq <= part->last;
}

bool Revocation::includes(const Revocation& other) const {
  if (node != other.node) return false;
  if (!stream.is_zero())
    return stream == other.stream && range.first <= other.range.first && other.range.last <= range.last;
  if (range.first > other.range.first || range.last < other.range.last) return false;
  // All that stays after this one must stay after the other.
  return std::all_of(kept.begin(), kept.end(), [&](const UpdateKey& stays) {
    const auto part = other.part_of(stays.stream);
    return !part || part->first > stays.seq;
  });
}

bool is_needless(const Revocation& revocation, const std::set<Revocation>& known) {
  if (revocation.kind != Revocation::Kind::proven) return false;
  return std::any_of(known.begin(), known.end(), [&](const Revocation& other) {
    if (other == revocation || !other.includes(revocation)) return false;
    return other < revocation || !revocation.includes(other);
  });
}

void add_revocation(const Revocation& revocation, std::set<Revocation>& known) {
  RUMOR_CHECK(!is_needless(revocation, known));
  RUMOR_CHECK(known.insert(revocation).second);
  std::erase_if(known, [&](const Revocation& one) { return is_needless(one, known); });
}

std::optional<std::string_view> Revocation::invalid() const {
  if (node.is_zero() || !range.valid()) return "a revocation of nothing";
  if (kind == Kind::withdrawn && (stream.is_zero() || range.last != seq_max)) return "a withdrawal of a wrong form";
  if (kind != Kind::proven) return std::nullopt;
  if (false_update.seq == 0 || false_update.seq > seq_max || !stream_belongs_to(false_update.stream, node))
    return "a proof of nothing";
  if (kept.size() > kept_max) return "a proof that keeps too many streams";
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const bool ascends = i == 0 || kept[i - 1].stream < kept[i].stream;
    if (!ascends || kept[i].seq == 0 || kept[i].seq > seq_max) return "a proof with a list that does not ascend";
    if (kept[i].stream == false_update.stream && kept[i].seq + 1 != false_update.seq)
      return "a proof that contradicts itself";
  }
  if (covers(false_update) && (false_update.seq == 1 || !covers({false_update.stream, false_update.seq - 1})))
    return std::nullopt;
  return "a proof that contradicts itself";
}

std::string Revocation::text() const {
  switch (kind) {
    case Kind::proven:
      return str("the updates of ", node.brief(), " from ", false_update.seq, " of stream ",
                 false_update.stream.brief(), " on");
    case Kind::owner:
      if (stream.is_zero()) return str("all updates of ", node.brief());
      [[fallthrough]];
    case Kind::withdrawn:
      break;
  }
  return str("updates ", range.first, " to ", range.last, " of stream ", stream.brief(), " of ", node.brief());
}

void Revocation::encode(ByteWriter& out) const {
  RUMOR_CHECK(kind != Kind::owner && !invalid());
  out.u8(static_cast<std::uint8_t>(kind));
  out.raw(node.view());
  if (kind == Kind::withdrawn) {
    out.raw(stream.view());
    out.varint(range.first);
    return out.raw(signature.view());
  }
  out.raw(false_update.stream.view());
  out.varint(false_update.seq);
  out.varint(kept.size());
  for (const UpdateKey& key : kept) {
    out.raw(key.stream.view());
    out.varint(key.seq);
  }
}

Revocation Revocation::decode(ByteReader& in) {
  Revocation one;
  const std::uint8_t kind = in.u8();
  one.kind = static_cast<Kind>(std::min<std::uint8_t>(kind, static_cast<std::uint8_t>(Kind::proven)));
  one.node = in.id<NodeId>();
  if (kind == static_cast<std::uint8_t>(Kind::withdrawn)) {
    one.stream = in.id<StreamId>();
    one.range.first = in.varint();
    one.signature = in.id<Signature>();
  } else if (kind == static_cast<std::uint8_t>(Kind::proven)) {
    one.false_update.stream = in.id<StreamId>();
    one.false_update.seq = in.varint();
    const std::uint64_t count = in.varint();
    for (std::uint64_t i = 0; i < count && i <= kept_max && !in.failed(); ++i) {
      const auto stream = in.id<StreamId>();
      one.kept.push_back({stream, in.varint()});
    }
  } else {
    one.node = {};  // the owner's travel elsewhere, and others there are none
  }
  return one;
}

}  // namespace rumor::gossip
