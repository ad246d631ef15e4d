#include "compress/payload/segment_table.h"

#include <algorithm>

#include "compress/payload/crc32c.h"
#include "compress/payload/head.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::compress {
namespace {

constexpr unsigned length_bits = 20, checksum_bits = 32, begin_bits = 31;

static_assert(segment_bytes_max == (1u << length_bits) - 1);

unsigned row_bits(const Segment& segment, TableKind kind) {
  return (kind == TableKind::link_form ? mode_bits : 0) + length_bits + checksum_bits +
         (segment.continues ? begin_bits : 0);
}

bool known(std::uint64_t mode) {
  return mode >= static_cast<std::uint64_t>(SegmentMode::raw) &&
         mode <= static_cast<std::uint64_t>(SegmentMode::link);
}

// The part before must have room for its entries below `begin`, and this one above it.
bool begin_fits(const ParamLayout& layout, const Segments& segments, const Segment& segment,
                std::uint64_t begin) {
  const Part& part = segments.parts[segment.first_part];
  const Part& before = segments.parts[segment.first_part - 1];
  const std::uint64_t size = layout.tensors()[part.tensor].size;
  return begin >= std::uint64_t{before.begin} + before.count && begin + part.count <= size;
}

}  // namespace

Bytes put_table(BitWriter out, const Segments& segments, const std::vector<SegmentPlace>& places,
                TableKind kind) {
  RUMOR_CHECK(places.size() == segments.list.size());
  for (std::size_t s = 0; s < places.size(); ++s) {
    const Segment& segment = segments.list[s];
    RUMOR_CHECK(places[s].bytes <= segment_bytes_max);
    if (kind == TableKind::link_form) out.put(static_cast<std::uint64_t>(places[s].mode), mode_bits);
    out.put(places[s].bytes, length_bits);
    out.put(places[s].checksum, checksum_bits);
    if (segment.continues) out.put(segments.parts[segment.first_part].begin, begin_bits);
  }
  Bytes bytes = out.take();
  const std::uint32_t checksum = crc32c(bytes);
  for (unsigned shift = 0; shift < checksum_bits; shift += 8)
    bytes.push_back(static_cast<std::uint8_t>(checksum >> shift));
  return bytes;
}

Result<SegmentTable> take_table(BitReader& in, BytesView message, const ParamLayout& layout,
                                Segments& segments, TableKind kind) {
  std::uint64_t bits = checksum_bits;
  for (const Segment& segment : segments.list) bits += row_bits(segment, kind);
  if (bits > in.remaining()) return damaged("it ends inside the table of segments", in.position());
  SegmentTable table;
  table.places.reserve(segments.list.size());
  std::uint64_t offset = 0;
  for (const Segment& segment : segments.list) {
    SegmentPlace place{.offset = offset};
    const std::uint64_t mode =
        kind == TableKind::link_form ? in.take(mode_bits) : static_cast<std::uint64_t>(SegmentMode::rice);
    if (!known(mode)) return damaged("a segment has an unknown mode", in.position());
    place.mode = static_cast<SegmentMode>(mode);
    place.bytes = static_cast<std::uint32_t>(in.take(length_bits));
    place.checksum = static_cast<std::uint32_t>(in.take(checksum_bits));
    offset += place.bytes;
    table.places.push_back(place);
    if (!segment.continues) continue;
    const std::uint64_t begin = in.take(begin_bits);
    if (!begin_fits(layout, segments, segment, begin))
      return damaged("a segment begins where it cannot", in.position());
    segments.set_begin(segment, static_cast<std::uint32_t>(begin));
  }
  if (in.take(static_cast<unsigned>(-in.position() & 7)) != 0)
    return damaged("filling bits are not zero", in.position());
  const std::uint64_t checked_bytes = 1 + in.position() / 8;
  if (checked_bytes + 4 > message.size())
    return damaged("it ends inside the table of segments", in.position());
  if (in.take(checksum_bits) != crc32c(message.first(checked_bytes)))
    return damaged("head and table do not have the checksum they claim", in.position());
  table.begin = checked_bytes + 4;
  if (offset != message.size() - table.begin)
    return damaged("its segments do not add up to its length", in.position());
  return table;
}

Result<void> read_segments(const Segments& segments, const SegmentTable& table, BytesView message,
                           Parallel* parallel, const ReadSegment& read) {
  const std::size_t count = segments.list.size();
  std::vector<std::uint8_t> sound(count, 0);
  Serial serial;
  (parallel != nullptr ? *parallel : serial).each(count, [&](std::size_t s) {
    const SegmentPlace& place = table.places[s];
    const std::uint64_t first_byte = table.begin + place.offset;
    sound[s] = (count == 1 || crc32c(message.subspan(first_byte, place.bytes)) == place.checksum) &&
               read(segments.list[s], place, first_byte);
  });
  const auto bad = std::find(sound.begin(), sound.end(), 0);
  if (bad == sound.end()) return {};
  return Error{Errc::corrupt, str("update is damaged in segment ", bad - sound.begin() + 1, " of ", count,
                                  ": checksum, entries or length are not as claimed")};
}

}  // namespace rumor::compress
