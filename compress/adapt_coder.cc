#include "compress/adapt_coder.h"

#include <bit>
#include <vector>

namespace rumor::compress {

namespace {

constexpr std::size_t state_bytes_min = 5;  // when words follow

}  // namespace

void EventList::write(Bytes& out) const {
  std::uint64_t state = last_;
  // A word for every 32 bits shed; no event takes more than 27 bits.
  const std::unique_ptr<std::uint32_t[]> words(new std::uint32_t[count_ + 1]);
  std::size_t shed = 0;
  for (std::size_t i = count_; i-- > 0;) {
    const std::uint64_t size = events_[i].size;
    if (state >= size << (63 - scale_bits)) {
      words[shed++] = static_cast<std::uint32_t>(state);
      state >>= 32;
    }
    const std::uint64_t whole = state / size;
    state = (whole << scale_bits) + events_[i].start + (state - whole * size);
  }
  std::size_t length = (static_cast<std::size_t>(std::bit_width(state)) + 7) / 8;
  if (shed != 0 && length < state_bytes_min) length = state_bytes_min;
  std::size_t at = out.size();
  out.resize(at + length + 4 * shed);
  for (std::size_t i = 0; i < length; ++i) out[at++] = static_cast<std::uint8_t>(state >> (8 * i));
  while (shed > 0) {
    const std::uint32_t word = words[--shed];
    for (unsigned shift = 0; shift < 32; shift += 8) out[at++] = static_cast<std::uint8_t>(word >> shift);
  }
}

StateReader::StateReader(BytesView body) {
  const std::size_t length =
      body.size() <= 8 ? body.size() : state_bytes_min + (body.size() - state_bytes_min) % 4;
  for (std::size_t i = 0; i < length; ++i) state_ |= std::uint64_t{body[i]} << (8 * i);
  next_ = body.data() + length;
  end_ = body.data() + body.size();
  const bool words = body.size() > 8;
  const bool shortest = length == 0 || body[length - 1] != 0 || (words && length == state_bytes_min);
  valid_ = shortest && state_ >> 63 == 0 && (!words || state_ >= least_state);
}

}  // namespace rumor::compress
