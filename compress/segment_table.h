// The table of an update with more than one segment: where each lies, its checksum, and where its first part
// begins (compress/FORMAT.md 4.5).
//
// Thread: plain functions.
#pragma once

#include <cstdint>
#include <vector>

#include "compress/bit_io.h"
#include "compress/segment.h"
#include "runtime/base/result.h"

namespace rumor::compress {

// A table has 20 bits for the length of a body; none in use comes near.
inline constexpr std::uint32_t segment_bytes_max = (1u << 20) - 1;

struct SegmentPlace {
  std::uint64_t offset = 0;  // from the end of the table
  std::uint32_t bytes = 0;
  std::uint32_t checksum = 0;  // CRC32C of these bytes
  SegmentMode mode = SegmentMode::rice;
};

// Canonical payloads know only RICE and do not say it.
enum class TableKind : std::uint8_t { canonical, transport };

// Takes over the bits before it, fills the last byte with zeros and adds its own checksum.
Bytes put_table(BitWriter out, const Segments& segments, const std::vector<SegmentPlace>& places,
                TableKind kind);

// Reads a table from where `in` stands in `message`, its checksum, and that the segments fill the message to
// its end; sets the begins of parts. begin: where the first segment lies in `message`.
// `in` reads message without its first byte.
// Errors: Errc::corrupt.
struct SegmentTable {
  std::vector<SegmentPlace> places;
  std::uint64_t begin = 0;
};
Result<SegmentTable> take_table(BitReader& in, BytesView message, const ParamLayout& layout,
                                Segments& segments, TableKind kind);

}  // namespace rumor::compress
