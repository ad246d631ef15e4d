#include "gpu/compress/codec.h"

#include <algorithm>

#include "compress/payload/crc32c.h"
#include "compress/payload/head.h"
#include "compress/payload/rice_segment.h"
#include "runtime/base/check.h"

namespace rumor::gpu {
namespace {

using compress::Head;
using compress::Part;
using compress::Segment;
using compress::SegmentPlace;
using compress::Segments;

// Kernels read and write whole words, and one word beyond the last.
constexpr std::size_t slack_bytes = 16;

std::vector<CodePart> code_parts(const ParamLayout& layout, const std::vector<Part>& parts) {
  std::vector<CodePart> coded;
  coded.reserve(parts.size());
  for (const Part& part : parts) {
    const compress::RicePart rice = compress::rice_part(layout, part);
    coded.push_back({rice.first, rice.span, rice.count, rice.low_bits, rice.thirds ? 1u : 0u,
                     part.end < layout.tensors()[part.tensor].size ? 1u : 0u});
  }
  return coded;
}

CodeSegment code_segment(const Segment& segment) {
  return {segment.first_part, segment.parts, segment.first_entry, 0, 0};
}

}  // namespace

// Copies parts and segments to the device, with the positions of the bodies.
Result<void> DeviceCodec::send(const std::vector<CodePart>& parts, const std::vector<CodeSegment>& places) {
  if (Result<void> made = parts_.make_room(*gpu_, parts.size(), "parts of a payload"); !made) return made;
  if (Result<void> made = segments_.make_room(*gpu_, places.size(), "segments of a payload"); !made) return made;
  parts_.write(parts.data(), parts.size());
  segments_.write(places.data(), places.size());
  return {};
}

// Sets where each part that continues a tensor begins: right after the last entry of the part before it.
Result<void> DeviceCodec::set_begins(const DeviceUpdate& update, Segments& segments) {
  std::vector<std::uint32_t> before;
  for (const Segment& segment : segments.list)
    if (segment.continues) before.push_back(static_cast<std::uint32_t>(segment.first_entry - 1));
  if (before.empty()) return {};
  if (Result<void> made = words_.make_room(*gpu_, before.size(), "segments of a payload"); !made) return made;
  if (Result<void> made = gathered_.make_room(*gpu_, before.size(), "segments of a payload"); !made) return made;
  words_.write(before.data(), before.size());
  gpu_->table().gather(gpu_->device(), update.index.data(), words_.data(), static_cast<std::uint32_t>(before.size()),
                       gathered_.data());
  if (Result<void> read = gathered_.read(before.data(), before.size()); !read) return read;
  auto last = before.cbegin();
  for (const Segment& segment : segments.list) {
    if (!segment.continues) continue;
    const Part& part = segments.parts[segment.first_part];
    segments.set_begin(segment, *last++ - layout_.tensors()[part.tensor].offset + 1);
  }
  return {};
}

Result<Bytes> DeviceCodec::encode(const DeviceUpdate& update) {
  if (update.count == 0) return compress::empty_payload();
  const Head head{update.step, update.tensor_step, update.counts, update.count};
  Segments segments = compress::cut_segments(layout_, update.counts);
  if (Result<void> set = set_begins(update, segments); !set) return set.error();
  compress::BitWriter start = compress::begin_payload(head);
  const bool one = segments.list.size() == 1;
  const std::uint64_t start_bits = start.size();
  Bytes payload;
  if (one) payload = start.take();

  // Each body gets room for its longest possible form; a single segment begins where the head ends.
  std::vector<CodeSegment> places;
  std::uint64_t at = one ? start_bits : 0;
  for (const Segment& segment : segments.list) {
    places.push_back(code_segment(segment));
    places.back().at = at;
    at = (at + compress::rice_body_bits_max(segments.parts_of(segment)) + 7) / 8 * 8;
  }
  const std::size_t room = at / 8 + slack_bytes;
  if (Result<void> sent = send(code_parts(layout_, segments.parts), places); !sent) return sent.error();
  if (Result<void> made = bytes_.make_room(*gpu_, room, "a payload"); !made) return made.error();
  if (Result<void> made = ends_.make_room(*gpu_, places.size(), "segments of a payload"); !made) return made.error();
  const GpuTable& table = gpu_->table();
  table.fill(gpu_->device(), bytes_.data(), 0, room);
  if (one) bytes_.write(payload.data(), payload.size());
  table.encode(gpu_->device(), parts_.data(), segments_.data(), static_cast<std::uint32_t>(places.size()),
               update.index.data(), update.negative.data(), bytes_.data(), ends_.data());
  std::vector<std::uint64_t> ends(places.size());
  if (Result<void> read = ends_.read(ends.data(), ends.size()); !read) return read.error();
  Bytes bodies((ends.back() + 7) / 8);
  if (Result<void> read = bytes_.read(bodies.data(), bodies.size()); !read) return read.error();
  if (one) return bodies;

  std::vector<SegmentPlace> table_rows(places.size());
  for (std::size_t s = 0; s < places.size(); ++s) {
    table_rows[s].bytes = static_cast<std::uint32_t>((ends[s] - places[s].at + 7) / 8);
    table_rows[s].checksum = compress::crc32c(BytesView(bodies).subspan(places[s].at / 8, table_rows[s].bytes));
  }
  payload = compress::put_table(std::move(start), segments, table_rows, compress::TableKind::canonical);
  for (std::size_t s = 0; s < places.size(); ++s) {
    const BytesView body = BytesView(bodies).subspan(places[s].at / 8, table_rows[s].bytes);
    payload.insert(payload.end(), body.begin(), body.end());
  }
  return payload;
}

// ---- decoding ----

std::uint64_t DeviceCodec::Opened::begin(std::size_t s) const {
  return table ? 8 * (table->begin + table->places[s].offset) : 8 + head_bits;
}

std::uint64_t DeviceCodec::Opened::end(std::size_t s) const {
  return table ? begin(s) + std::uint64_t{8} * table->places[s].bytes : std::uint64_t{8} * payload.size();
}

bool DeviceCodec::Opened::checksums_right() const {
  return !table || compress::read_segments(segments, *table, payload, nullptr,
                                           [](const Segment&, const SegmentPlace&, std::uint64_t) { return true; })
                       .ok();
}

Result<void> DeviceCodec::Opened::check(const std::vector<std::uint32_t>& sound) const {
  if (segments.list.empty()) return {};
  if (table) {
    return compress::read_segments(segments, *table, payload, nullptr,
                                   [&](const Segment& segment, const SegmentPlace&, std::uint64_t) {
                                     const auto s = static_cast<std::size_t>(&segment - segments.list.data());
                                     return sound[first_segment + s] != 0;
                                   });
  }
  if (sound[first_segment] != 0) return {};
  return compress::damaged("entries outside their tensor, past the end, or bits after the last", head_bits);
}

Result<DeviceCodec::Opened> DeviceCodec::open(BytesView payload) const {
  Result<compress::PayloadStart> start = compress::open_payload(layout_, payload);
  if (!start) return start.error();
  Opened opened;
  opened.payload = payload;
  opened.head = std::move(start->head);
  if (opened.head.entries == 0) return opened;
  opened.segments = compress::cut_segments(layout_, opened.head.counts);
  opened.head_bits = start->in.position();
  if (opened.segments.list.size() == 1) return opened;
  auto table =
      compress::take_table(start->in, payload, layout_, opened.segments, compress::TableKind::canonical);
  if (!table) return table.error();
  opened.table = std::move(table).value();
  return opened;
}

// Writes the payloads to the device, one after another.
Result<void> DeviceCodec::write_payloads(std::span<const Opened> opened) {
  std::size_t bytes = 0;
  for (const Opened& one : opened) bytes += one.payload.size();
  if (Result<void> made = bytes_.make_room(*gpu_, bytes + slack_bytes, "a payload"); !made) return made;
  std::uint8_t* to = bytes_.data();
  for (const Opened& one : opened) {
    gpu_->table().copy_in(gpu_->device(), to, one.payload.data(), one.payload.size());
    to += one.payload.size();
  }
  gpu_->table().fill(gpu_->device(), to, 0, slack_bytes);
  return {};
}

Result<void> DeviceCodec::begin_bodies(Begun& begun, DeviceUpdate& out) {
  std::vector<CodePart> parts;
  std::vector<CodeSegment> places;
  std::uint64_t entries = 0, bits = 0;
  for (Opened& one : begun.opened_) {
    one.first_segment = places.size();
    for (std::size_t s = 0; s < one.segments.list.size(); ++s) {
      places.push_back(code_segment(one.segments.list[s]));
      places.back().first_part += static_cast<std::uint32_t>(parts.size());
      places.back().first_entry += entries;
      places.back().at = bits + one.begin(s);
      places.back().end = bits + one.end(s);
    }
    const std::vector<CodePart> own = code_parts(layout_, one.segments.parts);
    parts.insert(parts.end(), own.begin(), own.end());
    entries += one.head.entries;
    bits += std::uint64_t{8} * one.payload.size();
  }
  RUMOR_CHECK(entries <= UINT32_MAX);
  begun.segments_ = places.size();
  if (places.empty()) return {};
  for (Result<void> done : {send(parts, places), out.make_room(*gpu_, entries), write_payloads(begun.opened_),
                            begun.sound_.make_room(*gpu_, places.size(), "segments of a payload")})
    if (!done) return done;
  out.count = static_cast<std::uint32_t>(entries);
  gpu_->table().decode(gpu_->device(), parts_.data(), segments_.data(), static_cast<std::uint32_t>(places.size()),
                       bytes_.data(), out.index.data(), out.negative.data(), begun.sound_.data());
  return {};
}

Result<void> DeviceCodec::begin(std::span<const BytesView> payloads, DeviceUpdate& out, Begun& begun) {
  out.clear();
  begun.opened_.clear();
  for (const BytesView payload : payloads) {
    Result<Opened> one = open(payload);
    if (!one) return one.error();
    begun.opened_.push_back(std::move(one).value());
  }
  if (Result<void> bodies = begin_bodies(begun, out); !bodies) {
    out.clear();
    return bodies;
  }
  // The host checks the checksums while the device decodes.
  begun.checksums_right_ = std::all_of(begun.opened_.begin(), begun.opened_.end(),
                                       [](const Opened& one) { return one.checksums_right(); });
  return {};
}

Result<void> DeviceCodec::finish(Begun& begun, DeviceUpdate& out) const {
  std::vector<std::uint32_t> sound(begun.segments_);
  Result<void> done = begun.sound_.read(sound.data(), sound.size());
  const bool all_sound = std::count(sound.begin(), sound.end(), 0u) == 0;
  if (!all_sound || !begun.checksums_right_)
    for (auto one = begun.opened_.begin(); done && one != begun.opened_.end(); ++one) done = one->check(sound);
  if (!done) out.clear();
  return done;
}

Result<void> DeviceCodec::decode(BytesView payload, DeviceUpdate& out) {
  Result<void> done = begin({&payload, 1}, out, begun_);
  if (done) done = finish(begun_, out);
  if (!done) return done;
  Head& head = begun_.opened_.front().head;
  out.step = head.step;
  out.tensor_step = std::move(head.tensor_step);
  out.counts = std::move(head.counts);
  done = out.set_steps(*gpu_);
  if (!done) out.clear();
  return done;
}

Result<std::vector<std::uint32_t>> DeviceCodec::decode_all(std::span<const BytesView> payloads, DeviceUpdate& out) {
  Result<void> done = begin(payloads, out, begun_);
  if (done) done = finish(begun_, out);
  if (!done) return done.error();
  std::vector<std::uint32_t> entries;
  for (const Opened& one : begun_.opened_) entries.push_back(static_cast<std::uint32_t>(one.head.entries));
  return entries;
}

}  // namespace rumor::gpu
