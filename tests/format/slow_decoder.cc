#include "tests/format/slow_decoder.h"

namespace rumor::slow {
namespace {

using Sizes = std::vector<std::uint64_t>;
using Payload = std::vector<std::uint8_t>;

// Chapter 2. Reading past the end sets `ended`; the values are then of no meaning.
struct BitStream {
  std::vector<bool> bits;
  std::size_t at = 0;
  bool ended = false;

  BitStream(const Payload& payload, std::size_t first, std::size_t bytes) {
    for (std::size_t byte = first; byte < first + bytes; ++byte)
      for (int bit = 0; bit < 8; ++bit) bits.push_back((payload[byte] >> bit) & 1);
  }
  bool next() {
    if (at == bits.size()) {
      ended = true;
      return true;  // so that unary numbers end
    }
    return bits[at++];
  }
  std::uint64_t number(std::uint64_t width) {
    std::uint64_t value = 0;
    for (std::uint64_t i = 0; i < width; ++i) value += std::uint64_t{next()} << i;
    return value;
  }
  std::uint64_t unary() {
    std::uint64_t zeros = 0;
    while (!next()) ++zeros;
    return zeros;
  }
  bool fill() {
    while (at % 8 != 0)
      if (next()) return false;
    return true;
  }
};

std::uint32_t crc32c(const Payload& payload, std::size_t first, std::size_t bytes) {
  std::uint32_t state = 0xffffffff;
  for (std::size_t byte = first; byte < first + bytes; ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      const bool odd = ((state ^ (payload[byte] >> bit)) & 1) != 0;
      state = (state >> 1) ^ (odd ? 0x82f63b78 : 0);  // 0x1EDC6F41, its bits in reverse
    }
  return ~state;
}

// 4.3
std::optional<std::vector<std::uint64_t>> counts_of(BitStream& stream, const Sizes& sizes) {
  std::vector<std::uint64_t> counts;
  std::uint64_t sum = 0;
  for (const std::uint64_t size : sizes) {
    const std::uint64_t low_bits = stream.unary();
    if (low_bits > 31) return std::nullopt;
    const std::uint64_t count = (std::uint64_t{1} << low_bits) + stream.number(low_bits) - 1;
    if (stream.ended || count > size) return std::nullopt;
    counts.push_back(count);
    sum += count;
  }
  if (sum == 0) return std::nullopt;
  return counts;
}

// 4.4. True unless it must be rejected.
bool take_steps(BitStream& stream, const std::vector<std::uint64_t>& counts,
                std::vector<std::uint64_t>& steps) {
  bool first = true, differ = false;
  for (std::size_t tensor = 0; tensor < counts.size(); ++tensor) {
    if (counts[tensor] == 0) continue;
    if (!first) {
      const std::uint64_t width = stream.number(5);
      if (width == 0) return false;
      const std::uint64_t step = (std::uint64_t{1} << (width - 1)) + stream.number(width - 1);
      differ = differ || step != steps[tensor];
      steps[tensor] = step;
    }
    first = false;
  }
  return differ && !stream.ended;
}

struct Part {
  std::size_t tensor;
  std::uint64_t begin, end, count;
};
struct Segment {
  std::vector<Part> parts;
  std::uint64_t entries = 0, length = 0, checksum = 0;
  std::uint64_t mode = 2;  // RICE
};

// 4.5, first paragraph
std::vector<Segment> cut(const Sizes& sizes, const std::vector<std::uint64_t>& counts) {
  std::vector<Segment> segments(1);
  for (std::size_t tensor = 0; tensor < sizes.size(); ++tensor)
    for (std::uint64_t left = counts[tensor]; left > 0;) {
      const std::uint64_t count = left < 16384 ? left : 16384;
      if (segments.back().entries + count > 16384) segments.emplace_back();
      segments.back().parts.push_back({tensor, 0, sizes[tensor], count});
      segments.back().entries += count;
      left -= count;
    }
  return segments;
}

// The row of each segment; 6.1: it begins with the mode. False when it must be rejected.
bool take_table(BitStream& stream, std::vector<Segment>& segments, bool modes) {
  Part* before = nullptr;
  for (Segment& segment : segments) {
    if (modes) segment.mode = stream.number(3);
    segment.length = stream.number(20);
    segment.checksum = stream.number(32);
    Part& part = segment.parts.front();
    if (before != nullptr && before->tensor == part.tensor) {
      part.begin = stream.number(31);
      if (part.begin < before->begin + before->count || part.begin + part.count > part.end) return false;
      before->end = part.begin;
    }
    before = &segment.parts.back();
  }
  return stream.fill() && !stream.ended;
}

// 4.6: whether a divisor of this kind is chosen for n positions and k entries.
bool chosen(std::uint64_t divisor, std::uint64_t n, std::uint64_t k) {
  const std::uint64_t places = 2 * n - k;
  if (divisor == 1) return 320 * k >= 77 * places;
  if (divisor % 3 == 0) return 10 * k * (divisor / 3) >= places;
  return 64 * k * (divisor / 2) >= 9 * places;
}

bool take_part(BitStream& stream, const Part& part, std::uint64_t tensor_size, std::uint64_t step,
               Update& update) {
  const std::uint64_t n = part.end - part.begin, k = part.count;
  std::uint64_t divisor = 1;
  while (!chosen(divisor, n, k))  // 1, 2, 3, 4, 6, 8, ...
    divisor = divisor == 1 ? 2 : divisor % 3 == 0 ? divisor / 3 * 4 : divisor / 2 * 3;
  const bool thirds = divisor % 3 == 0;
  std::uint64_t low_bits = 0;
  while ((std::uint64_t{1} << low_bits) < (thirds ? divisor / 3 : divisor)) ++low_bits;
  std::vector<std::uint64_t> low, third(k, 0);
  std::vector<bool> minus;
  for (std::uint64_t e = 0; e < k; ++e) {
    low.push_back(stream.number(low_bits));
    minus.push_back(stream.next());
    if (stream.ended) return false;
  }
  if (thirds) {
    for (std::uint64_t e = 0; e < k; ++e) third[e] = stream.number(1);
    for (std::uint64_t e = 0; e < k; ++e)
      if (third[e] > 0) third[e] += stream.number(1);
  }
  std::uint64_t next = part.begin;
  for (std::uint64_t e = 0; e < k; ++e) {
    std::uint64_t high = stream.unary();
    if (stream.ended) return false;
    if (thirds) high = 3 * high + third[e];
    const std::uint64_t gap = (high << low_bits) + low[e];
    if (next + gap >= part.end) return false;
    update.entries.push_back({part.tensor, next + gap, minus[e], step});
    next += gap + 1;
  }
  return part.end == tensor_size || next == part.end;
}

// 6.2, RAW
bool take_raw(BitStream& stream, const Part& part, std::uint64_t step, Update& update) {
  std::uint64_t width = 0;
  while (((part.end - part.begin - 1) >> width) > 0) ++width;
  for (std::uint64_t e = 0; e < part.count; ++e) {
    const std::uint64_t position = part.begin + stream.number(width);
    const bool minus = stream.next();
    const bool ascends = e == 0 || position > update.entries.back().position;
    if (stream.ended || position >= part.end || !ascends) return false;
    update.entries.push_back({part.tensor, position, minus, step});
  }
  return true;
}

// 6.2, BITMAP
bool take_bitmap(BitStream& stream, const Part& part, std::uint64_t step, Update& update) {
  const std::size_t first = update.entries.size();
  for (std::uint64_t position = part.begin; position < part.end; ++position) {
    if (stream.next()) update.entries.push_back({part.tensor, position, false, step});
    if (stream.ended || update.entries.size() - first > part.count) return false;
  }
  if (update.entries.size() - first != part.count) return false;
  for (std::size_t e = first; e < update.entries.size(); ++e) update.entries[e].minus = stream.next();
  return !stream.ended;
}

bool take_segment(BitStream& stream, const Segment& segment, const Sizes& sizes,
                  const std::vector<std::uint64_t>& steps, Update& update) {
  for (const Part& part : segment.parts) {
    const std::uint64_t size = sizes[part.tensor], step = steps[part.tensor];
    const bool taken = segment.mode == 1   ? take_raw(stream, part, step, update)
                       : segment.mode == 3 ? take_bitmap(stream, part, step, update)
                                           : take_part(stream, part, size, step, update);
    if (!taken) return false;
    if (part.end != size && update.entries.back().position != part.end - 1) return false;
  }
  return stream.fill() && stream.at == stream.bits.size();  // 4.7
}

bool take_segments(BitStream& stream, std::vector<Segment>& segments, const Payload& payload,
                   const Sizes& sizes, const std::vector<std::uint64_t>& steps, Update& update) {
  std::size_t at = 1 + stream.at / 8;
  if (stream.number(32) != crc32c(payload, 0, at) || stream.ended) return false;
  at += 4;
  std::uint64_t lengths = 0;
  for (const Segment& segment : segments) lengths += segment.length;
  if (lengths != payload.size() - at) return false;
  for (const Segment& segment : segments) {
    if (crc32c(payload, at, segment.length) != segment.checksum) return false;
    BitStream body(payload, at, segment.length);
    if (!take_segment(body, segment, sizes, steps, update)) return false;
    at += segment.length;
  }
  return true;
}

// The part that both forms share: 4.1 to 4.4 and the rows of the table.
struct Outline {
  BitStream stream;
  std::vector<std::uint64_t> steps;
  std::vector<Segment> segments;
  bool empty = false;
};

std::optional<Outline> outline_of(const Sizes& sizes, const Payload& payload, unsigned version) {
  if (payload.empty()) return std::nullopt;
  // 4.1
  const unsigned width = payload[0] / 8;
  if (payload[0] % 8 != version) return std::nullopt;
  Outline outline{BitStream(payload, 1, payload.size() - 1), {}, {}};
  BitStream& stream = outline.stream;
  if (width == 0) {
    if (payload.size() > 1 || version != 2) return std::nullopt;
    outline.empty = true;
    return outline;
  }
  // 4.2
  const std::uint64_t step = (std::uint64_t{1} << (width - 1)) + stream.number(width - 1);
  const bool flag = stream.next();
  if (stream.ended) return std::nullopt;
  const auto counts = counts_of(stream, sizes);
  if (!counts) return std::nullopt;
  outline.steps.assign(sizes.size(), step);
  if (flag && !take_steps(stream, *counts, outline.steps)) return std::nullopt;
  std::uint64_t entries = 0;
  for (const std::uint64_t count : *counts) entries += count;
  const std::uint64_t left = stream.bits.size() - stream.at;
  if (version == 2 ? 2 * entries > left : entries * 8 > left * 16) return std::nullopt;
  outline.segments = cut(sizes, *counts);
  const bool modes = version == 6;
  if (outline.segments.size() > 1 && !take_table(stream, outline.segments, modes)) return std::nullopt;
  if (outline.segments.size() == 1 && modes) {
    outline.segments[0].mode = stream.number(3);
    if (!stream.fill() || stream.ended) return std::nullopt;
  }
  return outline;
}

std::optional<Update> bodies_of(Outline& outline, const Sizes& sizes, const Payload& payload) {
  Update update;
  if (outline.empty) return update;
  std::vector<Segment>& segments = outline.segments;
  const bool sound = segments.size() == 1
                         ? take_segment(outline.stream, segments[0], sizes, outline.steps, update)
                         : take_segments(outline.stream, segments, payload, sizes, outline.steps, update);
  if (!sound) return std::nullopt;
  return update;
}

}  // namespace

std::optional<Update> decode(const Sizes& sizes, const Payload& payload) {
  auto outline = outline_of(sizes, payload, 2);
  if (!outline) return std::nullopt;
  return bodies_of(*outline, sizes, payload);
}

std::optional<Update> decode_message(const Sizes& sizes, const Payload& message, bool& foreign) {
  foreign = false;
  if (message.empty() || message[0] % 8 != 6) return decode(sizes, message);
  auto outline = outline_of(sizes, message, 6);
  if (!outline) return std::nullopt;
  for (const Segment& segment : outline->segments) {
    if (segment.mode < 1 || segment.mode > 5) return std::nullopt;
    foreign = foreign || segment.mode > 3;
  }
  if (foreign) return std::nullopt;
  return bodies_of(*outline, sizes, message);
}

std::size_t head_bytes(const Sizes& sizes, const Payload& payload) {
  const auto outline = outline_of(sizes, payload, payload[0] % 8);
  return outline ? 1 + outline->stream.at / 8 : 0;
}

void put_head_checksum(Payload& payload, std::size_t head_bytes) {
  const std::uint32_t checksum = crc32c(payload, 0, head_bytes);
  for (int byte = 0; byte < 4; ++byte)
    payload[head_bytes + static_cast<std::size_t>(byte)] = static_cast<std::uint8_t>(checksum >> (8 * byte));
}

}  // namespace rumor::slow
