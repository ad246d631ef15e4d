// The RICE body of a segment: its parts one after another as one bit stream (compress/FORMAT.md 4.6).
//
// Thread: plain functions; segments of one update may be coded on several threads.
#pragma once

#include <cstdint>
#include <span>

#include "compress/payload/rice_kernels.h"
#include "compress/payload/segment.h"
#include "runtime/base/param_layout.h"

namespace rumor::compress {

// Bytes behind the end of a body that kernels may read (decode) or overwrite (encode).
inline constexpr std::size_t rice_slack_bytes = 64;

// A part as the kernels want it: in positions of the flat vector, with its divisor.
RicePart rice_part(const ParamLayout& layout, const Part& part);

// Most bits that the body of these parts can have.
std::uint64_t rice_body_bits_max(std::span<const Part> parts);

// Writes the parts from bit `at` of `out` on and returns the bit after them; as RiceKernels::encode, and bits
// up to the end of the last byte are zero. index: positions in the flat vector.
// Requires: entries as `parts` says; checked.
std::uint64_t rice_encode(const ParamLayout& layout, std::span<const Part> parts, const std::uint32_t* index,
                          const std::uint8_t* negative, std::uint8_t* out, std::uint64_t at,
                          const RiceKernels& kernels);

// Reads the parts from bit `at` of `body` on, which must end with them. Returns false if it does not hold exactly such
// parts: entries outside their part, a part that does not reach its end although another continues, bits left over or
// not zero. The content of index and negative is then unspecified.
// Requires: rice_slack_bytes readable behind `body`, room for the sum of the counts.
bool rice_decode(const ParamLayout& layout, std::span<const Part> parts, BytesView body, std::uint64_t at,
                 std::uint32_t* index, std::uint8_t* negative, const RiceKernels& kernels);

// The same for a body somewhere in `message`, of which anything may follow or nothing: copies the body when
// there is too little behind it.
bool rice_decode_within(const ParamLayout& layout, std::span<const Part> parts, BytesView message,
                        std::uint64_t first_byte, std::uint64_t bytes, std::uint64_t at, std::uint32_t* index,
                        std::uint8_t* negative, const RiceKernels& kernels);

}  // namespace rumor::compress
