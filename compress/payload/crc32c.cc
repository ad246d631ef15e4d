#include "compress/payload/crc32c.h"

#include <array>
#include <cstring>

#include "compress/payload/bit_io.h"
#include "runtime/base/kernel_choice.h"

namespace rumor::compress {

#if defined(__x86_64__)
// crc32c_sse42.cc
std::uint32_t crc32c_update_sse42(std::uint32_t state, const std::uint8_t* bytes, std::size_t size);
#endif

namespace {

constexpr std::uint32_t polynomial = 0x82f6'3b78;  // 0x1edc6f41 with the bits in reverse

// tables[b][v]: the effect of a byte of value v on the state, `b` bytes later.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t value = 0; value < 256; ++value) {
    std::uint32_t state = value;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? polynomial : 0);
    tables[0][value] = state;
  }
  for (std::size_t later = 1; later < 8; ++later)
    for (std::size_t value = 0; value < 256; ++value) {
      const std::uint32_t before = tables[later - 1][value];
      tables[later][value] = (before >> 8) ^ tables[0][before & 255];
    }
  return tables;
}

constexpr Tables tables = make_tables();
static_assert(tables[0][128] == polynomial);

std::uint32_t update_portable(std::uint32_t state, const std::uint8_t* bytes, std::size_t size) {
  for (; size >= 8; size -= 8, bytes += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, 8);
    word = from_little(word) ^ state;
    state = 0;
    for (std::size_t b = 0; b < 8; ++b) state ^= tables[7 - b][(word >> (8 * b)) & 255];
  }
  for (; size > 0; --size, ++bytes) state = (state >> 8) ^ tables[0][(state ^ *bytes) & 255];
  return state;
}

}  // namespace

std::uint32_t crc32c_portable(BytesView bytes) {
  return ~update_portable(~std::uint32_t{0}, bytes.data(), bytes.size());
}

std::uint32_t crc32c(BytesView bytes) {
#if defined(__x86_64__)
  if (kernel_level() > KernelLevel::portable && __builtin_cpu_supports("sse4.2"))
    return ~crc32c_update_sse42(~std::uint32_t{0}, bytes.data(), bytes.size());
#endif
  return crc32c_portable(bytes);
}

}  // namespace rumor::compress
