#include "tests/format/slow_decoder.h"

namespace rumor::slow {
namespace {

// Chapter 2. Reading past the end sets `ended`; the values are then of no meaning.
struct BitStream {
  std::vector<bool> bits;
  std::size_t at = 0;
  bool ended = false;

  explicit BitStream(const std::vector<std::uint8_t>& payload) {
    for (std::size_t byte = 1; byte < payload.size(); ++byte)
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
};

// 4.4: the least K with 320 (k << K) >= 77 (2n - k).
std::uint64_t parameter_of(std::uint64_t n, std::uint64_t k) {
  std::uint64_t parameter = 0;
  while (320 * (k << parameter) < 77 * (2 * n - k)) ++parameter;
  return parameter;
}

// 4.3
std::optional<std::vector<std::uint64_t>> counts_of(BitStream& stream,
                                                    const std::vector<std::uint64_t>& sizes) {
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

// 4.4 and 4.5
bool take_tensor(BitStream& stream, std::size_t tensor, std::uint64_t n, std::uint64_t k, Update& update) {
  const std::uint64_t parameter = parameter_of(n, k);
  std::vector<std::uint64_t> low;
  std::vector<bool> minus;
  for (std::uint64_t e = 0; e < k; ++e) {
    low.push_back(stream.number(parameter));
    minus.push_back(stream.next());
    if (stream.ended) return false;
  }
  std::uint64_t next = 0;
  for (std::uint64_t e = 0; e < k; ++e) {
    const std::uint64_t gap = stream.unary() * (std::uint64_t{1} << parameter) + low[e];
    if (stream.ended || next + gap >= n) return false;
    update.entries.push_back({tensor, next + gap, minus[e]});
    next += gap + 1;
  }
  return true;
}

}  // namespace

std::optional<Update> decode(const std::vector<std::uint64_t>& sizes,
                             const std::vector<std::uint8_t>& payload) {
  if (payload.empty()) return std::nullopt;
  // 4.1
  const unsigned version = payload[0] % 8, width = payload[0] / 8;
  if (version != 1) return std::nullopt;
  Update update;
  if (width == 0) {
    if (payload.size() > 1) return std::nullopt;
    return update;
  }
  BitStream stream(payload);
  // 4.2
  update.step = (std::uint64_t{1} << (width - 1)) + stream.number(width - 1);
  const auto counts = counts_of(stream, sizes);
  if (!counts) return std::nullopt;
  for (std::size_t tensor = 0; tensor < sizes.size(); ++tensor)
    if ((*counts)[tensor] > 0 && !take_tensor(stream, tensor, sizes[tensor], (*counts)[tensor], update))
      return std::nullopt;
  // 4.6
  if (stream.bits.size() - stream.at >= 8) return std::nullopt;
  while (stream.at < stream.bits.size())
    if (stream.next()) return std::nullopt;
  return update;
}

}  // namespace rumor::slow
