// The floating-point formats of weight files, and how they become floats and are made of them.
//
//   F32, F64   IEEE 754 binary32 and binary64
//   F16        IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction
//   BF16       the upper half of a binary32: sign, 8 bits of exponent, 7 of fraction
//
// All are little-endian. F32, F16 and BF16 are exact in a float; F64 is rounded to the nearest one. Rounding is to
// nearest, ties to even, in whole-number arithmetic, so it is the same on every machine.
//
// Thread: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/base/types.h"

namespace rumor::models {

enum class FloatFormat : std::uint8_t { f32, bf16, f16, f64 };

// The format of a dtype as safetensors writes it ("BF16"); nothing for any other dtype.
std::optional<FloatFormat> float_format(std::string_view dtype);
// The inverse.
std::string_view dtype_of(FloatFormat format);
// Bytes of one value.
std::size_t bytes_of(FloatFormat format);

// Values first, first + stride, ... of `bytes`. Requires: all of them are in `bytes`.
void read_floats(FloatFormat format, BytesView bytes, std::size_t first, std::size_t stride, std::span<float> out);

// A value beyond the largest of the format becomes infinite.
std::uint16_t f16_of(float value);
std::uint16_t bf16_of(float value);

// Writes the values one after another. Requires: out.size() == values.size() * bytes_of(format).
void write_floats(FloatFormat format, std::span<const float> values, std::span<std::uint8_t> out);

}  // namespace rumor::models
