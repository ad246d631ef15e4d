#include "compress/link/adapt_coder.h"

#include <algorithm>
#include <bit>

namespace rumor::compress {

namespace {

constexpr std::size_t state_bytes_min = 5;  // when words follow
constexpr std::uint64_t least_state = std::uint64_t{1} << 31;

// The far state where it begins: a word, or one of two marks if no word had been shed.
constexpr std::uint64_t of_word = std::uint64_t{1} << 32;
constexpr std::uint64_t no_word = least_state;
constexpr std::uint64_t no_word_small = least_state + 1;

constexpr unsigned low_bits_max = 16;

// The states and the words that they have shed.
class StateWriter {
 public:
  // events_max: each sheds a word at most.
  StateWriter(std::uint64_t number, std::size_t events_max) : words_(new std::uint32_t[events_max + 16]) {
    state_[0] = number;
  }

  void add(std::size_t lane, std::uint64_t start, std::uint64_t size) {
    std::uint64_t state = state_[lane];
    // Without a branch: whether a word is shed is as good as random.
    const std::uint64_t full = state >= size << (63 - scale_bits) ? 1 : 0;
    words_[shed_] = static_cast<std::uint32_t>(state);
    shed_ += full;
    state >>= 32 * full;
    const std::uint64_t whole = state / size;
    state_[lane] = (whole << scale_bits) + start + (state - whole * size);
  }

  void split() {
    if (shed_ > 0) {
      state_[1] = of_word | words_[--shed_];
    } else if (state_[0] >= least_state) {
      state_[1] = no_word;
    } else {
      state_[1] = no_word_small;
      state_[0] += least_state;
    }
  }

  // The far state as events of the near one.
  void merge() {
    if (state_[1] >> 32 != 0) {
      words_[shed_++] = static_cast<std::uint32_t>(state_[1]);
      state_[1] >>= 32;
    }
    const auto length = static_cast<unsigned>(std::bit_width(state_[1])) - 1;
    const std::uint64_t plain = state_[1] - (std::uint64_t{1} << length);
    number(plain >> low_bits_max, length - std::min(length, low_bits_max));
    number(plain % (std::uint64_t{1} << low_bits_max), std::min(length, low_bits_max));
    number(length, 5);
  }

  void write(Bytes& out) const {
    std::size_t length = (static_cast<std::size_t>(std::bit_width(state_[0])) + 7) / 8;
    if (shed_ != 0 && length < state_bytes_min) length = state_bytes_min;
    std::size_t at = out.size();
    out.resize(at + length + 4 * shed_);
    for (std::size_t i = 0; i < length; ++i) out[at++] = static_cast<std::uint8_t>(state_[0] >> (8 * i));
    for (std::size_t left = shed_; left > 0;) {
      const std::uint32_t word = words_[--left];
      for (unsigned shift = 0; shift < 32; shift += 8) out[at++] = static_cast<std::uint8_t>(word >> shift);
    }
  }

 private:
  void number(std::uint64_t value, unsigned bits) {
    if (bits > 0) add(0, value << (scale_bits - bits), std::uint64_t{1} << (scale_bits - bits));
  }

  std::array<std::uint64_t, 2> state_{};
  std::unique_ptr<std::uint32_t[]> words_;
  std::size_t shed_ = 0;
};

}  // namespace

void EventList::write(Bytes& out) const {
  StateWriter writer(last_, count_);
  std::size_t i = count_;
  for (; i > joined_at_; --i) writer.add(0, events_[i - 1].start & (scale - 1), events_[i - 1].size);
  if (apart_) {
    writer.split();
    for (; i > 0; --i)
      writer.add(events_[i - 1].start >> 31, events_[i - 1].start & (scale - 1), events_[i - 1].size);
    writer.merge();
  }
  writer.write(out);
}

StateReader::StateReader(std::uint8_t* body, std::size_t size) {
  const std::size_t length = size <= 8 ? size : state_bytes_min + (size - state_bytes_min) % 4;
  for (std::size_t i = 0; i < length; ++i) state_[0] |= std::uint64_t{body[i]} << (8 * i);
  next_ = body + length;
  end_ = body + size;
  const bool words = size > 8;
  const bool shortest = length == 0 || body[length - 1] != 0 || (words && length == state_bytes_min);
  valid_ = shortest && state_[0] >> 63 == 0 && (!words || state_[0] >= least_state);
}

std::uint32_t StateReader::number(unsigned bits) {
  if (bits == 0) return 0;
  const std::uint32_t at = slot(Lane::near), size = 1u << (scale_bits - bits);
  take(Lane::near, at % size, size);
  return at / size;
}

bool StateReader::part() {
  const unsigned length = number(5);
  std::uint64_t state = std::uint64_t{1} << length;
  state += number(std::min(length, low_bits_max));
  state += std::uint64_t{number(length - std::min(length, low_bits_max))} << low_bits_max;
  apart_ = 1;
  state_[1] = refilled(state);
  return state_[1] >= least_state;
}

bool StateReader::join() {
  apart_ = 0;
  if (state_[0] < least_state) return false;
  if (state_[1] >> 32 == 1) {
    auto word = static_cast<std::uint32_t>(state_[1]);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap32(word);
    next_ -= 4;
    std::memcpy(next_, &word, 4);
    return true;
  }
  if (next_ != end_ || (state_[1] != no_word && state_[1] != no_word_small)) return false;
  if (state_[1] == no_word) return true;
  state_[0] -= least_state;
  return state_[0] < least_state;
}

}  // namespace rumor::compress
