// The head of an update, before its entries: steps and counts (compress/FORMAT.md 4.1 to 4.4). It is the same in the
// canonical payload and in link form.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compress/payload/bit_io.h"
#include "compress/payload/update.h"
#include "runtime/base/param_layout.h"
#include "runtime/base/result.h"

namespace rumor::compress {

struct Head {
  std::int32_t step = 0;  // of all tensors; 0 when there are no entries or tensor_step is used
  std::vector<std::int32_t> tensor_step;  // as in SparseUpdate
  std::vector<std::uint32_t> counts;      // entries of each tensor
  std::uint64_t entries = 0;
};

// Counts the entries of each tensor. Requires: `update` as encode() wants it; checked.
Head head_of(const ParamLayout& layout, const SparseUpdate& update);

// Bits of the first step: 0 for an update without entries.
unsigned step_width(const Head& head);
// Steps and counts. Requires: entries > 0.
void put_head(BitWriter& out, const Head& head);

// Entries that a byte of a message can hold: in RICE none takes less than two bits; a model may predict them
// better than that, but an encoder does not use it where it does (compress/FORMAT.md 6.2).
inline constexpr unsigned entries_per_byte_canonical = 4, entries_per_byte_link_form = 16;

// Reads the output of put_head(), after step_width(). Allocates only 8 bytes a tensor, and only if the stream has a
// bit for each tensor.
// Errors: Errc::corrupt; `in` is then where reading stopped. A returned head has entries, and no more than the bytes
// left can hold.
Result<Head> take_head(BitReader& in, const ParamLayout& layout, unsigned width, unsigned entries_per_byte);

// The start of a canonical payload, byte 0 and head. Requires: entries > 0.
BitWriter begin_payload(const Head& head);
// The whole payload of an update without entries.
Bytes empty_payload();

// Reads their output; `in` is then behind it. entries == 0: an update without entries, which is the whole payload.
// Refers to `payload`. Errors: Errc::corrupt.
struct PayloadStart {
  Head head;
  BitReader in;
};
Result<PayloadStart> open_payload(const ParamLayout& layout, BytesView payload);

// An error with the byte at which reading stopped; bit counts from the end of byte 0.
Error damaged(const char* what, std::uint64_t bit);

}  // namespace rumor::compress
