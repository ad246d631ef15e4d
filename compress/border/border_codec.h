// Border numbers: activations and their gradients between two stages of a model, as bytes
// (gossip/PIPELINE.md, 4).
//
//   f32   4 bytes a value: exact
//   bf16  the upper half of an f32, rounded to the nearest, ties to even: 2 bytes a value
//   int8  for each 256 values of a row an f32 scale, then a signed byte for each: value = byte * scale, and
//   the scale is
//         the largest magnitude over 127, so the error is at most half of it: 1.02 bytes a value
//
// Little-endian. Bits: the same bytes and values on every machine.
//
// Thread: pure functions. Cost: one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::compress {

// Numbers travel: never renumber.
enum class BorderNumbers : std::uint8_t { f32 = 1, bf16 = 2, int8 = 3 };

inline constexpr std::size_t border_block = 256;  // values of a row that share a scale

// Bytes of `rows` rows of so many floats.
std::size_t border_bytes(BorderNumbers numbers, std::size_t rows, std::size_t floats);

// Appends values [rows, floats]. A value that is not finite, or becomes so in bf16, gives bytes that no
// decoder takes: the receiver then says so.
void encode_border(BorderNumbers numbers, std::size_t floats, std::span<const float> values, Bytes& out);

// Values [rows, floats]; `out` says how many. Errors: Errc::corrupt for bytes of another length, or a value
// that is not finite.
Result<void> decode_border(BorderNumbers numbers, std::size_t floats, BytesView bytes, std::span<float> out);

}  // namespace rumor::compress
