#include "gossip/contract/stream_name.h"

#include <algorithm>
#include <string_view>

#include "runtime/base/bytes.h"
#include "runtime/base/sha256.h"

namespace rumor::gossip {

namespace {

constexpr std::size_t half_stream = StreamId::size / 2;

Hash256 stream_owner_hash(const NodeId& node, BytesView random) {
  constexpr std::string_view domain = "rumor-stream-v1";
  ByteWriter out;
  for (const char c : domain) out.u8(static_cast<std::uint8_t>(c));
  out.u8(0);
  out.raw(node.view());
  out.raw(random);
  return sha256(out.bytes());
}

}  // namespace

StreamId stream_of(const NodeId& node, std::uint64_t random) {
  ByteWriter out;
  out.u64(random);
  out.raw(stream_owner_hash(node, out.bytes()).view().first(half_stream));
  return StreamId::from(out.bytes());
}

bool stream_belongs_to(const StreamId& stream, const NodeId& node) {
  const Hash256 hash = stream_owner_hash(node, stream.view().first(half_stream));
  return std::equal(hash.bytes.begin(), hash.bytes.begin() + half_stream, stream.bytes.begin() + half_stream);
}

}  // namespace rumor::gossip
