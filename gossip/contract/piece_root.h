// The root of long bytes: a hash by which each piece of them can be checked by itself, once the hashes of all pieces
// are there.
//
// Thread: plain functions. Cost: SHA-256 over all bytes once, spread over `parallel`.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/parallel.h"
#include "runtime/base/sha256.h"

namespace rumor::gossip {

inline constexpr std::size_t root_piece_bytes = 64 << 10;  // of each piece but the last

constexpr std::uint64_t root_pieces(std::uint64_t bytes) { return (bytes + root_piece_bytes - 1) / root_piece_bytes; }

// Requires: number < root_pieces(bytes.size()).
BytesView root_piece(BytesView bytes, std::uint64_t number);
std::vector<Hash256> piece_hashes(BytesView bytes, Parallel& parallel);
// SHA-256 of (u64 bytes, the hashes). Whoever knows the root and the size can check the hashes, and then each piece.
Hash256 piece_root(std::uint64_t bytes, std::span<const Hash256> hashes);

}  // namespace rumor::gossip
