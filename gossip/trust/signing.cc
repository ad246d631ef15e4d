#include "gossip/trust/signing.h"

#include <string_view>

#include "runtime/base/bytes.h"
#include "runtime/base/sha256.h"

namespace rumor::gossip {

namespace {

// A domain ends in a zero byte: none is the beginning of another.
ByteWriter begin(std::string_view domain) {
  ByteWriter out;
  for (const char c : domain) out.u8(static_cast<std::uint8_t>(c));
  out.u8(0);
  return out;
}

}  // namespace

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
  if (record.stage != 0) out.varint(record.stage);
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
  const bool by_owner = revocation.kind == Revocation::Kind::owner;
  ByteWriter out = begin(by_owner ? "rumor-revoke-v1" : "rumor-withdraw-v1");
  out.raw(run.view());
  out.raw(revocation.node.view());
  out.raw(revocation.stream.view());
  out.u64(revocation.range.first);
  if (by_owner) out.u64(revocation.range.last);
  return out.take();
}

bool update_is_signed(const Keys& keys, const RunId& run, const UpdateHeader& header) {
  return stream_belongs_to(header.key.stream, header.origin) &&
         keys.verify(header.origin, update_message(run, header), header.signature);
}

bool revocation_is_signed(const Keys& keys, const RunId& run, const std::optional<NodeId>& owner,
                          const Revocation& revocation) {
  if (revocation.kind == Revocation::Kind::proven) return true;
  if (!revocation.stream.is_zero() && !stream_belongs_to(revocation.stream, revocation.node)) return false;
  const std::optional<NodeId> signer =
      revocation.kind == Revocation::Kind::withdrawn ? std::optional(revocation.node) : owner;
  return signer && keys.verify(*signer, revoke_message(run, revocation), revocation.signature);
}

bool record_is_signed(const Keys& keys, const RunId& run, const PeerRecord& record) {
  return keys.verify(record.node, record_message(run, record), record.signature);
}

}  // namespace rumor::gossip
