// The form in which a chunk of weights travels.
#include <zstd.h>

#include <cstring>

#include "runtime/base/limits.h"
#include "runtime/replica/snapshots.h"

namespace rumor {

namespace {

constexpr std::uint8_t plain = 0, folded = 1;
constexpr int zstd_level = 1;

Error not_that() {
  return {Errc::corrupt, "it does not unpack to a chunk"};
}

}  // namespace

Bytes pack_chunk(std::span<const std::int32_t> weights) {
  const std::size_t n = weights.size();
  Bytes planes(4 * n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto w = static_cast<std::uint32_t>(weights[i]);
    const std::uint32_t z = (w << 1) ^ (0u - (w >> 31));
    for (std::size_t p = 0; p < 4; ++p) planes[p * n + i] = static_cast<std::uint8_t>(z >> (8 * p));
  }
  Bytes packed(1 + ZSTD_compressBound(planes.size()));
  const std::size_t size =
      ZSTD_compress(packed.data() + 1, packed.size() - 1, planes.data(), planes.size(), zstd_level);
  if (!ZSTD_isError(size) && size < planes.size()) {
    packed[0] = folded;
    packed.resize(1 + size);
    return packed;
  }
  packed.resize(1 + 4 * n);
  packed[0] = plain;
  std::memcpy(packed.data() + 1, weights.data(), 4 * n);
  return packed;
}

Result<void> unpack_chunk(BytesView packed, std::span<std::int32_t> out) {
  if (packed.empty() || packed[0] > folded) return not_that();
  const BytesView body = packed.subspan(1);
  const std::size_t n = out.size();
  if (packed[0] == plain) {
    if (body.size() != 4 * n) return not_that();
    std::memcpy(out.data(), body.data(), body.size());
    return {};
  }
  Bytes planes(4 * n);
  if (ZSTD_decompress(planes.data(), planes.size(), body.data(), body.size()) != planes.size())
    return not_that();
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t z = 0;
    for (std::size_t p = 0; p < 4; ++p) z |= static_cast<std::uint32_t>(planes[p * n + i]) << (8 * p);
    out[i] = static_cast<std::int32_t>((z >> 1) ^ (0u - (z & 1)));
  }
  return {};
}

}  // namespace rumor
