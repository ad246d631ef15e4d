#include "gpu/codec.h"

#include <algorithm>

#include "compress/crc32c.h"
#include "compress/head.h"
#include "compress/rice_segment.h"
#include "runtime/base/check.h"

namespace rumor::gpu {
namespace {

using compress::Head;
using compress::Part;
using compress::Segment;
using compress::SegmentPlace;
using compress::Segments;

// Kernels read and write whole words, and one beyond the last.
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

// Parts and segments go to the device, with the places of the bodies.
Result<void> DeviceCodec::send(const Segments& segments, std::vector<CodeSegment> places) {
  const std::vector<CodePart> parts = code_parts(layout_, segments.parts);
  if (Result<void> made = parts_.make_room(*gpu_, parts.size(), "parts of a payload"); !made) return made;
  if (Result<void> made = segments_.make_room(*gpu_, places.size(), "segments of a payload"); !made) return made;
  parts_.write(parts.data(), parts.size());
  segments_.write(places.data(), places.size());
  return {};
}

// Where parts that go on with a tensor begin: right after the entry before them.
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

  // Every body into room for the longest it can be; with one segment it goes on where the head ends.
  std::vector<CodeSegment> places;
  std::uint64_t at = one ? start_bits : 0;
  for (const Segment& segment : segments.list) {
    places.push_back(code_segment(segment));
    places.back().at = at;
    at = (at + compress::rice_body_bits_max(segments.parts_of(segment)) + 7) / 8 * 8;
  }
  const std::size_t room = at / 8 + slack_bytes;
  if (Result<void> sent = send(segments, places); !sent) return sent.error();
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

Result<void> DeviceCodec::decode_bodies(BytesView payload, const Segments& segments, std::vector<CodeSegment> places,
                                        DeviceUpdate& out, std::vector<std::uint32_t>& sound) {
  const auto count = static_cast<std::uint32_t>(places.size());
  if (Result<void> sent = send(segments, std::move(places)); !sent) return sent;
  if (Result<void> made = out.make_room(*gpu_, out.count); !made) return made;
  if (Result<void> made = bytes_.make_room(*gpu_, payload.size() + slack_bytes, "a payload"); !made) return made;
  if (Result<void> made = words_.make_room(*gpu_, count, "segments of a payload"); !made) return made;
  bytes_.write(payload.data(), payload.size());
  const GpuTable& table = gpu_->table();
  table.fill(gpu_->device(), bytes_.data() + payload.size(), 0, slack_bytes);
  table.decode(gpu_->device(), parts_.data(), segments_.data(), count, bytes_.data(), out.index.data(),
               out.negative.data(), words_.data());
  sound.resize(count);
  return words_.read(sound.data(), count);
}

Result<void> DeviceCodec::decode_entries(BytesView payload, DeviceUpdate& out, Parallel* parallel) {
  Result<compress::PayloadStart> start = compress::open_payload(layout_, payload);
  if (!start) return start.error();
  Head& head = start->head;
  if (head.entries == 0) return out.set_steps(*gpu_);
  out.count = static_cast<std::uint32_t>(head.entries);
  out.step = head.step;
  out.tensor_step = std::move(head.tensor_step);
  Segments segments = compress::cut_segments(layout_, head.counts);
  std::vector<CodeSegment> places;
  std::vector<std::uint32_t> sound;
  if (segments.list.size() == 1) {
    places.push_back(code_segment(segments.list[0]));
    places[0].at = 8 + start->in.position();
    places[0].end = std::uint64_t{8} * payload.size();
    if (Result<void> read = decode_bodies(payload, segments, places, out, sound); !read) return read;
    if (sound[0] == 0)
      return compress::damaged("entries outside their tensor, past the end, or bits after the last",
                               start->in.position());
  } else {
    const Result<compress::SegmentTable> table =
        compress::take_table(start->in, payload, layout_, segments, compress::TableKind::canonical);
    if (!table) return table.error();
    for (std::size_t s = 0; s < segments.list.size(); ++s) {
      places.push_back(code_segment(segments.list[s]));
      places[s].at = 8 * (table->begin + table->places[s].offset);
      places[s].end = places[s].at + std::uint64_t{8} * table->places[s].bytes;
    }
    if (Result<void> read = decode_bodies(payload, segments, places, out, sound); !read) return read;
    const auto was_sound = [&](const Segment& segment, const SegmentPlace&, std::uint64_t) {
      return sound[static_cast<std::size_t>(&segment - segments.list.data())] != 0;
    };
    if (Result<void> read = compress::read_segments(segments, *table, payload, parallel, was_sound); !read) return read;
  }
  out.counts = std::move(head.counts);
  return out.set_steps(*gpu_);
}

Result<void> DeviceCodec::decode(BytesView payload, DeviceUpdate& out, Parallel* parallel) {
  out.clear();
  Result<void> decoded = decode_entries(payload, out, parallel);
  if (!decoded) out.clear();
  return decoded;
}

}  // namespace rumor::gpu
