#include "gossip/contract/snapshot_port.h"

namespace rumor::gossip {

Bytes Manifest::encode() const {
  ByteWriter out;
  out.u64(bytes);
  out.sized(head);
  names.encode(out);
  for (const Hash256& hash : chunks) out.raw(hash.view());
  return out.take();
}

Result<Manifest> Manifest::decode(BytesView encoded) {
  if (encoded.size() > limits::manifest_bytes_max) return Error{Errc::limit, "a manifest too long"};
  ByteReader in(encoded);
  Manifest manifest;
  manifest.bytes = in.u64();
  const BytesView head = in.sized(limits::manifest_bytes_max);
  manifest.head.assign(head.begin(), head.end());
  Result<HaveSet> names = HaveSet::decode(in);
  if (!names) return names.error();
  manifest.names = std::move(names).value();
  if (in.failed() || manifest.bytes == 0 || manifest.bytes > limits::snapshot_bytes_max)
    return Error{Errc::corrupt, "a manifest of a wrong size"};
  const std::uint64_t chunks = (manifest.bytes - 1) / chunk_bytes_of(manifest.bytes) + 1;
  if (in.remaining() != chunks * Hash256::size)
    return Error{Errc::corrupt, "a manifest with a wrong number of hashes"};
  for (std::uint64_t i = 0; i < chunks; ++i) manifest.chunks.push_back(in.id<Hash256>());
  return manifest;
}

}  // namespace rumor::gossip
