#include "compress/link/link_form.h"

#include <algorithm>

#include "compress/link/segment_modes.h"
#include "compress/payload/bit_io.h"
#include "compress/payload/crc32c.h"
#include "compress/payload/head.h"
#include "compress/payload/segment_table.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::compress {
namespace {

constexpr unsigned link_version = 6;
constexpr unsigned link_version_bits = 3;

// Else it is a canonical payload.
bool in_modes(BytesView message) {
  return !message.empty() && (message[0] & ((1u << link_version_bits) - 1)) == link_version;
}

SegmentEntries entries_of(const SparseUpdate& update, const Segments& segments, const Segment& segment) {
  return {segments.parts_of(segment),
          std::span<const std::uint32_t>(update.index).subspan(segment.first_entry, segment.entries),
          std::span<const std::uint8_t>(update.negative).subspan(segment.first_entry, segment.entries)};
}

Bytes join(BitWriter head, const Segments& segments, const std::vector<SegmentBody>& bodies) {
  Bytes message;
  if (bodies.size() == 1) {
    head.put(static_cast<std::uint64_t>(bodies[0].mode), mode_bits);
    message = head.take();
  } else {
    std::vector<SegmentPlace> places;
    for (const SegmentBody& body : bodies)
      places.push_back({.bytes = static_cast<std::uint32_t>(body.bytes.size()),
                        .checksum = crc32c(body.bytes),
                        .mode = body.mode});
    message = put_table(std::move(head), segments, places, TableKind::link_form);
  }
  for (const SegmentBody& body : bodies) message.insert(message.end(), body.bytes.begin(), body.bytes.end());
  return message;
}

// The version 6 form, each segment as body_of(SegmentEntries) says. Requires: entries.
template <typename BodyOf>
Bytes encode_modes(const ParamLayout& layout, const SparseUpdate& update, const CodecOptions& options,
                   BodyOf&& body_of) {
  const Head head = head_of(layout, update);
  BitWriter out(Bytes{static_cast<std::uint8_t>(link_version | (step_width(head) << link_version_bits))});
  put_head(out, head);
  const Segments segments = segments_of(layout, head.counts, update.index);
  std::vector<SegmentBody> bodies(segments.list.size());
  Serial serial;
  Parallel& parallel = options.parallel != nullptr ? *options.parallel : serial;
  parallel.each(bodies.size(),
                [&](std::size_t s) { bodies[s] = body_of(entries_of(update, segments, segments.list[s])); });
  return join(std::move(out), segments, bodies);
}

// Reads the only segment: its mode, fill, and all the rest.
Result<SegmentTable> take_single(BitReader& in, BytesView message) {
  const std::uint64_t mode = in.take(mode_bits);
  if (mode < static_cast<std::uint64_t>(SegmentMode::raw) ||
      mode > static_cast<std::uint64_t>(SegmentMode::link))
    return damaged("a segment has an unknown mode", in.position());
  if (in.take(static_cast<unsigned>(-in.position() & 7)) != 0)
    return damaged("filling bits are not zero", in.position());
  SegmentTable table;
  table.begin = std::min<std::uint64_t>(message.size(), 1 + in.position() / 8);
  SegmentPlace place{.mode = static_cast<SegmentMode>(mode)};
  const std::uint64_t bytes = message.size() - table.begin;
  if (bytes > segment_bytes_max) return damaged("its segment is longer than any", in.position());
  place.bytes = static_cast<std::uint32_t>(bytes);
  table.places.push_back(place);
  return table;
}

// All of a version 6 message but the bodies.
struct Outline {
  Head head;
  Segments segments;
  SegmentTable table;
};

Result<Outline> take_outline(const ParamLayout& layout, BytesView message) {
  const unsigned width = message[0] >> link_version_bits;
  if (width == 0) return damaged("an update without entries has one form, the canonical", 0);
  BitReader in(message.subspan(1));
  Result<Head> head = take_head(in, layout, width, entries_per_byte_link_form);
  if (!head) return head.error();
  Segments segments = cut_segments(layout, head->counts);
  Result<SegmentTable> table = segments.list.size() == 1
                                   ? take_single(in, message)
                                   : take_table(in, message, layout, segments, TableKind::link_form);
  if (!table) return table.error();
  return Outline{std::move(head).value(), std::move(segments), std::move(table).value()};
}

Result<SparseUpdate> decode_modes(const ParamLayout& layout, BytesView message, const LinkHistory* history,
                                  const CodecOptions& options) {
  Result<Outline> outline = take_outline(layout, message);
  if (!outline) return outline.error();
  const Segments& segments = outline->segments;
  SparseUpdate update{outline->head.step, {}, {}, std::move(outline->head.tensor_step)};
  update.index.resize(outline->head.entries);
  update.negative.resize(outline->head.entries);
  const auto read = [&](const Segment& segment, const SegmentPlace& place, std::uint64_t first_byte) {
    return decode_body(layout, segments.parts_of(segment), message, place, first_byte, history,
                       update.index.data() + segment.first_entry,
                       update.negative.data() + segment.first_entry, options.kernels());
  };
  if (Result<void> sound = read_segments(segments, outline->table, message, options.parallel, read); !sound)
    return sound.error();
  return update;
}

}  // namespace

Bytes encode_link_form(const ParamLayout& layout, const SparseUpdate& update, LinkForm choice,
                       LinkHistory* history, const CodecOptions& options) {
  RUMOR_CHECK((history != nullptr) == (choice == LinkForm::link));
  Bytes message = encode(layout, update, options);
  if (choice != LinkForm::canonical && !update.index.empty()) {
    Bytes shorter = encode_modes(layout, update, options, [&](const SegmentEntries& segment) {
      return shortest_body(layout, segment, choice, history, options.kernels());
    });
    if (shorter.size() < message.size()) message = std::move(shorter);
  }
  if (history != nullptr) history->remember(update.index, update.negative);
  return message;
}

Result<SparseUpdate> decode_link_form(const ParamLayout& layout, BytesView message, LinkHistory* history,
                                      const CodecOptions& options) {
  Result<SparseUpdate> update =
      in_modes(message) ? decode_modes(layout, message, history, options) : decode(layout, message, options);
  if (update.ok() && history != nullptr) history->remember(update->index, update->negative);
  return update;
}

Result<Bytes> to_link_form(const ParamLayout& layout, BytesView payload, LinkForm choice,
                           LinkHistory* history, const CodecOptions& options) {
  if (choice == LinkForm::canonical) return Bytes(payload.begin(), payload.end());
  const Result<SparseUpdate> update = decode(layout, payload, options);
  if (!update) return update.error();
  return encode_link_form(layout, *update, choice, history, options);
}

Result<Bytes> from_link_form(const ParamLayout& layout, BytesView message, LinkHistory* history,
                             const CodecOptions& options) {
  if (history == nullptr && !in_modes(message)) return Bytes(message.begin(), message.end());
  const Result<SparseUpdate> update = decode_link_form(layout, message, history, options);
  if (!update) return update.error();
  return encode(layout, *update, options);
}

Bytes encode_link_form_in(const ParamLayout& layout, const SparseUpdate& update, SegmentMode mode,
                          const LinkHistory* history) {
  RUMOR_CHECK(!update.index.empty());
  return encode_modes(layout, update, {}, [&](const SegmentEntries& segment) {
    return SegmentBody{mode, body_in(layout, segment, mode, history, rice_kernels())};
  });
}

std::vector<SegmentMode> link_form_modes(const ParamLayout& layout, BytesView message) {
  std::vector<SegmentMode> modes;
  if (in_modes(message)) {
    const Result<Outline> outline = take_outline(layout, message);
    if (!outline) return {};
    for (const SegmentPlace& place : outline->table.places) modes.push_back(place.mode);
  } else if (!message.empty()) {
    BitReader in(message.subspan(1));
    const unsigned width = message[0] >> link_version_bits;
    if (width == 0) return {};
    const Result<Head> head = take_head(in, layout, width, entries_per_byte_canonical);
    if (head.ok()) modes.assign(cut_segments(layout, head->counts).list.size(), SegmentMode::rice);
  }
  return modes;
}

}  // namespace rumor::compress
