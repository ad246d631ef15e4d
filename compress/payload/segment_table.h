// The table of an update with more than one segment: position, checksum, and begin of the first part of each segment
// (compress/FORMAT.md 4.5).
//
// Thread: plain functions. Work is spread over threads only if the caller passes a Parallel.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compress/payload/bit_io.h"
#include "compress/payload/segment.h"
#include "runtime/base/parallel.h"
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

// Width of a segment's mode, where it is written.
inline constexpr unsigned mode_bits = 3;

// Canonical payloads know only RICE and do not say it.
enum class TableKind : std::uint8_t { canonical, link_form };

// Takes over the bits before it, fills the last byte with zeros and adds its own checksum.
Bytes put_table(BitWriter out, const Segments& segments, const std::vector<SegmentPlace>& places,
                TableKind kind);

// Reads a table from the position of `in` in `message`. Checks its checksum, and that the segments fill the message to
// its end. Sets the begins of parts. begin: position of the first segment in `message`. `in` reads message without its
// first byte.
// Errors: Errc::corrupt.
struct SegmentTable {
  std::vector<SegmentPlace> places;
  std::uint64_t begin = 0;
};
Result<SegmentTable> take_table(BitReader& in, BytesView message, const ParamLayout& layout,
                                Segments& segments, TableKind kind);

// The function with which read_segments() reads one segment: from its bytes in `message` into the arrays of the
// update. Returns false if the bytes hold no such entries.
using ReadSegment =
    std::function<bool(const Segment& segment, const SegmentPlace& place, std::uint64_t first_byte)>;

// Reads all segments of a message, several at once where there is a `parallel`. Those of a table are read
// only if their checksum is right; a single one has none. Errors: Errc::corrupt, which names the first
// segment that is damaged; then some may have been read.
Result<void> read_segments(const Segments& segments, const SegmentTable& table, BytesView message,
                           Parallel* parallel, const ReadSegment& read);

}  // namespace rumor::compress
