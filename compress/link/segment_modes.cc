#include "compress/link/segment_modes.h"

#include <algorithm>
#include <bit>

#include "compress/payload/bit_io.h"
#include "compress/payload/head.h"
#include "compress/payload/rice_segment.h"
#include "runtime/base/check.h"

namespace rumor::compress {
namespace {

std::uint32_t first_of(const ParamLayout& layout, const Part& part) {
  return layout.tensors()[part.tensor].offset + part.begin;
}

// RAW: bits of a position inside its part.
unsigned raw_width(const Part& part) {
  return static_cast<unsigned>(std::bit_width(part.end - part.begin - 1));
}

std::uint64_t raw_bits(std::span<const Part> parts) {
  std::uint64_t bits = 0;
  for (const Part& part : parts) bits += std::uint64_t{part.count} * (raw_width(part) + 1);
  return bits;
}

std::uint64_t bitmap_bits(std::span<const Part> parts) {
  std::uint64_t bits = 0;
  for (const Part& part : parts) bits += std::uint64_t{part.end} - part.begin + part.count;
  return bits;
}

std::uint64_t bytes_of(std::uint64_t bits) {
  return (bits + 7) / 8;
}

Bytes rice_bytes(const ParamLayout& layout, const SegmentEntries& segment, const RiceKernels& kernels) {
  Bytes body(rice_body_bits_max(segment.parts) / 8 + 1 + rice_slack_bytes);
  const std::uint64_t bits = rice_encode(layout, segment.parts, segment.index.data(), segment.negative.data(),
                                         body.data(), 0, kernels);
  body.resize(bytes_of(bits));
  return body;
}

Bytes raw_bytes(const ParamLayout& layout, const SegmentEntries& segment) {
  BitWriter out(Bytes{});
  std::size_t e = 0;
  for (const Part& part : segment.parts)
    for (const std::size_t end = e + part.count; e < end; ++e) {
      out.put(segment.index[e] - first_of(layout, part), raw_width(part));
      out.put(segment.negative[e], 1);
    }
  return out.take();
}

Bytes bitmap_bytes(const ParamLayout& layout, const SegmentEntries& segment) {
  BitWriter out(Bytes{});
  std::size_t e = 0;
  for (const Part& part : segment.parts) {
    const std::size_t begin = e, end = e + part.count;
    std::uint32_t next = first_of(layout, part);
    for (; e < end; ++e) {
      out.put_unary(segment.index[e] - next);
      next = segment.index[e] + 1;
    }
    for (std::uint32_t left = part.end - part.begin - (next - first_of(layout, part)); left > 0;) {
      const std::uint32_t zeros = std::min(left, 48u);
      out.put(0, zeros);
      left -= zeros;
    }
    for (e = begin; e < end; ++e) out.put(segment.negative[e], 1);
  }
  return out.take();
}

Bytes adapt_bytes(const ParamLayout& layout, const SegmentEntries& segment, const LinkHistory* history) {
  std::vector<std::uint32_t> positions(segment.index.begin(), segment.index.end());
  std::size_t e = 0;
  for (const Part& part : segment.parts)
    for (const std::size_t end = e + part.count; e < end; ++e)
      positions[e] -= layout.tensors()[part.tensor].offset;
  Bytes body;
  adapt_encode(segment.parts, positions, segment.negative, history, body);
  return body;
}

// ---- decode ----

bool filled(BitReader& in) {
  return in.remaining() < 8 && in.take(static_cast<unsigned>(in.remaining())) == 0;
}

bool decode_raw(const ParamLayout& layout, std::span<const Part> parts, BytesView body, std::uint32_t* index,
                std::uint8_t* negative) {
  BitReader in(body);
  if (raw_bits(parts) > in.remaining()) return false;
  for (const Part& part : parts)
    for (std::uint32_t e = 0; e < part.count; ++e) {
      *index++ = first_of(layout, part) + static_cast<std::uint32_t>(in.take(raw_width(part)));
      *negative++ = static_cast<std::uint8_t>(in.take(1));
    }
  return filled(in);
}

bool decode_bitmap(const ParamLayout& layout, std::span<const Part> parts, BytesView body,
                   std::uint32_t* index, std::uint8_t* negative) {
  BitReader in(body);
  if (bitmap_bits(parts) > in.remaining()) return false;
  for (const Part& part : parts) {
    const std::uint64_t begin = in.position(), end = begin + part.end - part.begin;
    OneBits ones(in, begin);
    for (std::uint32_t e = 0; e < part.count; ++e) {
      const std::uint64_t one = ones.next();
      if (one >= end) return false;
      *index++ = first_of(layout, part) + static_cast<std::uint32_t>(one - begin);
    }
    if (ones.next() < end) return false;
    in.skip(end - begin);
    for (std::uint32_t e = 0; e < part.count; ++e) *negative++ = static_cast<std::uint8_t>(in.take(1));
  }
  return filled(in);
}

bool decode_adapt(const ParamLayout& layout, std::span<const Part> parts, BytesView body,
                  const LinkHistory* history, std::uint32_t* index, std::uint8_t* negative) {
  if (!adapt_decode(parts, body, history, index, negative)) return false;
  for (const Part& part : parts)
    for (std::uint32_t e = 0; e < part.count; ++e) *index++ += layout.tensors()[part.tensor].offset;
  return true;
}

// Checks the rules of every mode after decoding: positions ascend inside the part, a part that another part of the
// tensor follows reaches its end, signs are 0 or 1.
bool fits(const ParamLayout& layout, std::span<const Part> parts, const std::uint32_t* index,
          const std::uint8_t* negative) {
  for (const Part& part : parts) {
    const std::uint32_t first = first_of(layout, part), last = first + (part.end - part.begin) - 1;
    unsigned wrong = negative[0] > 1;
    for (std::uint32_t e = 1; e < part.count; ++e)
      wrong |= static_cast<unsigned>(index[e] <= index[e - 1]) | static_cast<unsigned>(negative[e] > 1);
    if (wrong != 0 || index[0] < first || index[part.count - 1] > last) return false;
    const bool another_follows = part.end < layout.tensors()[part.tensor].size;
    if (another_follows && index[part.count - 1] != last) return false;
    index += part.count;
    negative += part.count;
  }
  return true;
}

}  // namespace

Bytes body_in(const ParamLayout& layout, const SegmentEntries& segment, SegmentMode mode,
              const LinkHistory* history, const RiceKernels& kernels) {
  switch (mode) {
    case SegmentMode::raw:
      return raw_bytes(layout, segment);
    case SegmentMode::bitmap:
      return bitmap_bytes(layout, segment);
    case SegmentMode::adapt:
      return adapt_bytes(layout, segment, nullptr);
    case SegmentMode::link:
      RUMOR_CHECK(history != nullptr);
      return adapt_bytes(layout, segment, history);
    case SegmentMode::rice:
      break;
  }
  return rice_bytes(layout, segment, kernels);
}

SegmentBody shortest_body(const ParamLayout& layout, const SegmentEntries& segment, LinkForm choice,
                          const LinkHistory* history, const RiceKernels& kernels) {
  SegmentBody best{SegmentMode::rice, rice_bytes(layout, segment, kernels)};
  if (choice == LinkForm::canonical) return best;
  if (bytes_of(raw_bits(segment.parts)) < best.bytes.size())
    best = {SegmentMode::raw, raw_bytes(layout, segment)};
  if (bytes_of(bitmap_bits(segment.parts)) < best.bytes.size())
    best = {SegmentMode::bitmap, bitmap_bytes(layout, segment)};
  const auto consider = [&](SegmentMode mode, const LinkHistory* memory) {
    Bytes adapted = adapt_bytes(layout, segment, memory);
    const bool too_short = adapted.size() * entries_per_byte_link_form < segment.index.size();
    if (adapted.size() < best.bytes.size() && !too_short) best = {mode, std::move(adapted)};
  };
  consider(SegmentMode::adapt, nullptr);
  // A history misleads while rates change quickly, early in training.
  if (choice == LinkForm::link) consider(SegmentMode::link, history);
  return best;
}

bool decode_body(const ParamLayout& layout, std::span<const Part> parts, BytesView message,
                 const SegmentPlace& place, std::uint64_t first_byte, const LinkHistory* history,
                 std::uint32_t* index, std::uint8_t* negative, const RiceKernels& kernels) {
  const BytesView body = message.subspan(first_byte, place.bytes);
  bool read = false;
  switch (place.mode) {
    case SegmentMode::rice:
      return rice_decode_within(layout, parts, message, first_byte, place.bytes, 0, index, negative, kernels);
    case SegmentMode::raw:
      read = decode_raw(layout, parts, body, index, negative);
      break;
    case SegmentMode::bitmap:
      read = decode_bitmap(layout, parts, body, index, negative);
      break;
    case SegmentMode::adapt:
      read = decode_adapt(layout, parts, body, nullptr, index, negative);
      break;
    case SegmentMode::link:
      read = history != nullptr && decode_adapt(layout, parts, body, history, index, negative);
      break;
  }
  return read && fits(layout, parts, index, negative);
}

}  // namespace rumor::compress
