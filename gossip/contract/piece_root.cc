#include "gossip/contract/piece_root.h"

#include <algorithm>

#include "runtime/base/bytes.h"

namespace rumor::gossip {

BytesView root_piece(BytesView bytes, std::uint64_t number) {
  const auto begin = static_cast<std::size_t>(number) * root_piece_bytes;
  return bytes.subspan(begin, std::min(root_piece_bytes, bytes.size() - begin));
}

std::vector<Hash256> piece_hashes(BytesView bytes, Parallel& parallel) {
  std::vector<Hash256> hashes(root_pieces(bytes.size()));
  parallel.each(hashes.size(), [&](std::size_t i) { hashes[i] = sha256(root_piece(bytes, i)); });
  return hashes;
}

Hash256 piece_root(std::uint64_t bytes, std::span<const Hash256> hashes) {
  ByteWriter out;
  out.u64(bytes);
  for (const Hash256& hash : hashes) out.raw(hash.view());
  return sha256(out.bytes());
}

}  // namespace rumor::gossip
