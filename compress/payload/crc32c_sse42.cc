// CRC32C by its instruction, alone in its library because only this file may use it.
#include <nmmintrin.h>

#include <cstddef>
#include <cstdint>

namespace rumor::compress {

std::uint32_t crc32c_update_sse42(std::uint32_t state, const std::uint8_t* bytes, std::size_t size);

std::uint32_t crc32c_update_sse42(std::uint32_t state, const std::uint8_t* bytes, std::size_t size) {
  std::uint64_t wide = state;
  for (; size >= 8; size -= 8, bytes += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, bytes, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  state = static_cast<std::uint32_t>(wide);
  for (; size > 0; --size, ++bytes) state = _mm_crc32_u8(state, *bytes);
  return state;
}

}  // namespace rumor::compress
