#include "compress/border/border_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::compress {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr float int8_top = 127;

// A value that is not finite stays so.
std::uint16_t upper_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (!std::isfinite(value)) return static_cast<std::uint16_t>(bits >> 16);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::uint8_t* append(Bytes& out, std::size_t count) {
  out.resize(out.size() + count);
  return out.data() + out.size() - count;
}

void encode_bf16(std::span<const float> values, Bytes& out) {
  std::uint8_t* to = append(out, 2 * values.size());
  for (const float value : values) {
    const std::uint16_t half = upper_half(value);
    std::memcpy(to, &half, 2);
    to += 2;
  }
}

void encode_int8(std::span<const float> block, Bytes& out) {
  float top = 0;
  for (const float value : block) top = std::isfinite(value) ? std::max(top, std::abs(value)) : value - value;
  const float scale = top / int8_top;
  std::uint8_t* to = append(out, 4 + block.size());
  std::memcpy(to, &scale, 4);
  to += 4;
  for (const float value : block) {
    const float steps = scale > 0 ? std::clamp(value / scale, -int8_top, int8_top) : 0;
    *to++ = static_cast<std::uint8_t>(static_cast<int>(steps + (steps < 0 ? -0.5f : 0.5f)));
  }
}

bool decode_int8(ByteReader& in, std::span<float> block) {
  const float scale = std::bit_cast<float>(in.u32());
  if (!std::isfinite(scale * int8_top) || scale < 0) return false;
  for (float& value : block) {
    const auto step = static_cast<std::int8_t>(in.u8());
    if (step < -127) return false;
    value = static_cast<float>(step) * scale;
  }
  return true;
}

// work(block) for each block of each row.
template <class Float, class Work>
bool each_block(std::size_t floats, std::span<Float> values, const Work& work) {
  for (std::size_t row = 0; row < values.size(); row += floats)
    for (std::size_t at = 0; at < floats; at += border_block)
      if (!work(values.subspan(row + at, std::min(border_block, floats - at)))) return false;
  return true;
}

bool read_values(BorderNumbers numbers, std::size_t floats, BytesView bytes, std::span<float> out) {
  ByteReader in(bytes);
  if (numbers == BorderNumbers::int8)
    return each_block(floats, out, [&](std::span<float> block) { return decode_int8(in, block); });
  for (float& value : out) {
    value = std::bit_cast<float>(numbers == BorderNumbers::f32 ? in.u32() : std::uint32_t{in.u16()} << 16);
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace

std::size_t border_bytes(BorderNumbers numbers, std::size_t rows, std::size_t floats) {
  if (numbers == BorderNumbers::f32) return rows * floats * 4;
  if (numbers == BorderNumbers::bf16) return rows * floats * 2;
  return rows * (floats + (floats + border_block - 1) / border_block * 4);
}

void encode_border(BorderNumbers numbers, std::size_t floats, std::span<const float> values, Bytes& out) {
  RUMOR_CHECK(floats > 0 && values.size() % floats == 0);
  if (values.empty()) return;  // memcpy() takes no null pointer
  switch (numbers) {
    case BorderNumbers::f32:
      std::memcpy(append(out, values.size_bytes()), values.data(), values.size_bytes());
      break;
    case BorderNumbers::bf16:
      encode_bf16(values, out);
      break;
    case BorderNumbers::int8:
      each_block(floats, values, [&](std::span<const float> block) {
        encode_int8(block, out);
        return true;
      });
      break;
  }
}

Result<void> decode_border(BorderNumbers numbers, std::size_t floats, BytesView bytes, std::span<float> out) {
  RUMOR_CHECK(floats > 0 && out.size() % floats == 0);
  const std::size_t wanted = border_bytes(numbers, out.size() / floats, floats);
  if (bytes.size() != wanted)
    return Error{Errc::corrupt, str("a border of ", bytes.size(), " bytes, where ", wanted, " are expected")};
  if (!read_values(numbers, floats, bytes, out))
    return Error{Errc::corrupt, "a border with a value that is not finite, or out of range"};
  return {};
}

}  // namespace rumor::compress
