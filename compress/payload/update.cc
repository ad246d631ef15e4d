// The canonical payload, in the order of compress/FORMAT.md.
#include "compress/payload/update.h"

#include <algorithm>
#include <memory>
#include <span>

#include "compress/payload/bit_io.h"
#include "compress/payload/crc32c.h"
#include "compress/payload/head.h"
#include "compress/payload/rice_segment.h"
#include "compress/payload/segment_table.h"
#include "runtime/base/check.h"

namespace rumor::compress {
namespace {

// One segment: its body follows the head as one bit stream.
Bytes encode_one(const ParamLayout& layout, const SparseUpdate& update, BitWriter out,
                 const Segments& segments, const RiceKernels& kernels) {
  const std::uint64_t at = out.size();
  Bytes bytes = out.take();
  bytes.resize((at + rice_body_bits_max(segments.parts)) / 8 + 1 + rice_slack_bytes);
  const std::uint64_t end = rice_encode(layout, segments.parts, update.index.data(), update.negative.data(),
                                        bytes.data(), at, kernels);
  bytes.resize((end + 7) / 8);
  return bytes;
}

// Several: each is written on its own into room for the longest it can be, then they move together.
Bytes encode_many(const ParamLayout& layout, const SparseUpdate& update, BitWriter head,
                  const Segments& segments, const CodecOptions& options) {
  const std::size_t count = segments.list.size();
  std::vector<std::uint64_t> room(count + 1, 0);
  for (std::size_t s = 0; s < count; ++s)
    room[s + 1] =
        room[s] + rice_body_bits_max(segments.parts_of(segments.list[s])) / 8 + 1 + rice_slack_bytes;
  const auto bodies = std::make_unique_for_overwrite<std::uint8_t[]>(room[count]);
  std::vector<SegmentPlace> places(count);
  Serial serial;
  Parallel& parallel = options.parallel != nullptr ? *options.parallel : serial;
  parallel.each(count, [&](std::size_t s) {
    const Segment& segment = segments.list[s];
    std::uint8_t* body = bodies.get() + room[s];
    *body = 0;
    const std::uint64_t end =
        rice_encode(layout, segments.parts_of(segment), update.index.data() + segment.first_entry,
                    update.negative.data() + segment.first_entry, body, 0, options.kernels());
    places[s].bytes = static_cast<std::uint32_t>((end + 7) / 8);
    places[s].checksum = crc32c({body, places[s].bytes});
  });
  Bytes payload = put_table(std::move(head), segments, places, TableKind::canonical);
  std::size_t bytes = payload.size();
  for (const SegmentPlace& place : places) bytes += place.bytes;
  payload.reserve(bytes);
  for (std::size_t s = 0; s < count; ++s)
    payload.insert(payload.end(), bodies.get() + room[s], bodies.get() + room[s] + places[s].bytes);
  return payload;
}

Result<void> decode_many(const ParamLayout& layout, BytesView payload, BitReader& in, Segments& segments,
                         SparseUpdate& out, const CodecOptions& options) {
  const Result<SegmentTable> table = take_table(in, payload, layout, segments, TableKind::canonical);
  if (!table) return table.error();
  out.index.resize(segments.list.back().first_entry + segments.list.back().entries);
  out.negative.resize(out.index.size());
  const auto read = [&](const Segment& segment, const SegmentPlace& place, std::uint64_t first_byte) {
    return rice_decode_within(layout, segments.parts_of(segment), payload, first_byte, place.bytes, 0,
                              out.index.data() + segment.first_entry,
                              out.negative.data() + segment.first_entry, options.kernels());
  };
  return read_segments(segments, *table, payload, options.parallel, read);
}

Result<void> decode_entries(const ParamLayout& layout, BytesView payload, SparseUpdate& out,
                            const CodecOptions& options) {
  Result<PayloadStart> start = open_payload(layout, payload);
  if (!start) return start.error();
  Head& head = start->head;
  BitReader& in = start->in;
  if (head.entries == 0) return {};
  out.step = head.step;
  out.tensor_step = std::move(head.tensor_step);
  Segments segments = cut_segments(layout, head.counts);
  if (segments.list.size() > 1) return decode_many(layout, payload, in, segments, out, options);
  out.index.resize(head.entries);
  out.negative.resize(head.entries);
  if (!rice_decode_within(layout, segments.parts, payload, 0, payload.size(), 8 + in.position(),
                          out.index.data(), out.negative.data(), options.kernels()))
    return damaged("entries outside their tensor, past the end, or bits after the last", in.position());
  return {};
}

}  // namespace

std::vector<StepRun> step_runs(const ParamLayout& layout, const SparseUpdate& update) {
  if (update.index.empty()) return {};
  if (update.tensor_step.empty()) return {{0, update.index.size(), update.step}};
  RUMOR_CHECK(update.tensor_step.size() == layout.tensors().size());
  std::vector<StepRun> runs;
  auto at = update.index.begin();
  for (std::size_t t = 0; t < update.tensor_step.size(); ++t) {
    if (update.tensor_step[t] == 0) continue;
    const TensorInfo& tensor = layout.tensors()[t];
    const auto end = std::lower_bound(at, update.index.end(), tensor.offset + tensor.size);
    runs.push_back({static_cast<std::size_t>(at - update.index.begin()), static_cast<std::size_t>(end - at),
                    update.tensor_step[t]});
    at = end;
  }
  RUMOR_CHECK(at == update.index.end());
  return runs;
}

void normalize_steps(SparseUpdate& update) {
  std::int32_t common = 0;
  for (const std::int32_t step : update.tensor_step) {
    if (step == 0) continue;
    if (common != 0 && step != common) return;
    common = step;
  }
  if (update.tensor_step.empty()) return;
  update.tensor_step.clear();
  update.step = common;
}

Bytes encode(const ParamLayout& layout, const SparseUpdate& update, const CodecOptions& options) {
  const Head head = head_of(layout, update);
  if (head.entries == 0) return empty_payload();
  BitWriter out = begin_payload(head);
  const Segments segments = segments_of(layout, head.counts, update.index);
  if (segments.list.size() == 1)
    return encode_one(layout, update, std::move(out), segments, options.kernels());
  return encode_many(layout, update, std::move(out), segments, options);
}

Result<void> decode_into(const ParamLayout& layout, BytesView payload, SparseUpdate& out,
                         const CodecOptions& options) {
  out.step = 0;
  out.tensor_step.clear();
  Result<void> decoded = decode_entries(layout, payload, out, options);
  const bool empty = !decoded.ok() || (out.step == 0 && out.tensor_step.empty());
  if (empty) {
    out.step = 0;
    out.tensor_step.clear();
    out.index.clear();
    out.negative.clear();
  }
  return decoded;
}

Result<SparseUpdate> decode(const ParamLayout& layout, BytesView payload, const CodecOptions& options) {
  SparseUpdate update;
  if (const Result<void> decoded = decode_into(layout, payload, update, options); !decoded)
    return decoded.error();
  return update;
}

}  // namespace rumor::compress
