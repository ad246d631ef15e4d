#include "gossip/trust/signing.h"

#include <algorithm>
#include <string_view>

#include "runtime/base/bytes.h"
#include "runtime/base/sha256.h"

namespace rumor::gossip {

namespace {

constexpr std::size_t half_stream = StreamId::size / 2;

// A domain ends in a zero byte: none is the beginning of another.
ByteWriter begin(std::string_view domain) {
  ByteWriter out;
  for (const char c : domain) out.u8(static_cast<std::uint8_t>(c));
  out.u8(0);
  return out;
}

Hash256 owner_hash(const NodeId& node, BytesView random) {
  ByteWriter out = begin("rumor-stream-v1");
  out.raw(node.view());
  out.raw(random);
  return sha256(out.bytes());
}

}  // namespace

StreamId stream_of(const NodeId& node, std::uint64_t random) {
  ByteWriter out;
  out.u64(random);
  out.raw(owner_hash(node, out.bytes()).view().first(half_stream));
  return StreamId::from(out.bytes());
}

bool stream_belongs_to(const StreamId& stream, const NodeId& node) {
  const Hash256 hash = owner_hash(node, stream.view().first(half_stream));
  return std::equal(hash.bytes.begin(), hash.bytes.begin() + half_stream, stream.bytes.begin() + half_stream);
}

Bytes update_message(const RunId& run, const UpdateHeader& header) {
  ByteWriter out = begin("rumor-update-v1");
  out.raw(run.view());
  out.raw(header.key.stream.view());
  out.u64(header.key.seq);
  out.raw(header.payload_hash.view());
  out.u64(header.fingerprint);
  out.u64(header.period);
  out.u32(header.samples);
  return out.take();
}

Hash256 header_hash(const RunId& run, const UpdateHeader& header) {
  return sha256(update_message(run, header));
}

Bytes record_message(const RunId& run, const PeerRecord& record) {
  ByteWriter out = begin("rumor-record-v1");
  out.raw(run.view());
  out.raw(record.node.view());
  out.u64(record.number);
  out.varint(record.addresses.size());
  for (const std::string& address : record.addresses) out.text(address);
  return out.take();
}

Bytes buffers_message(const RunId& run, const Buffers& buffers) {
  ByteWriter out = begin("rumor-buffers-v1");
  out.raw(run.view());
  out.raw(buffers.node.view());
  out.u64(buffers.number);
  out.u64(buffers.progress);
  out.raw(sha256(buffers.values).view());
  return out.take();
}

Bytes revoke_message(const RunId& run, const Revocation& revocation) {
  ByteWriter out = begin("rumor-revoke-v1");
  out.raw(run.view());
  out.raw(revocation.node.view());
  out.raw(revocation.stream.view());
  out.u64(revocation.range.first);
  out.u64(revocation.range.last);
  return out.take();
}

bool Revocation::covers(const UpdateKey& key) const {
  const bool within = range.first <= key.seq && key.seq <= range.last;
  return within && (stream.is_zero() ? stream_belongs_to(key.stream, node) : stream == key.stream);
}

bool update_is_signed(const Keys& keys, const RunId& run, const UpdateHeader& header) {
  return stream_belongs_to(header.key.stream, header.origin) &&
         keys.verify(header.origin, update_message(run, header), header.signature);
}

bool revocation_is_signed(const Keys& keys, const RunId& run, const NodeId& owner,
                          const Revocation& revocation) {
  if (!revocation.stream.is_zero() && !stream_belongs_to(revocation.stream, revocation.node)) return false;
  return keys.verify(owner, revoke_message(run, revocation), revocation.owner);
}

bool record_is_signed(const Keys& keys, const RunId& run, const PeerRecord& record) {
  return keys.verify(record.node, record_message(run, record), record.signature);
}

}  // namespace rumor::gossip
