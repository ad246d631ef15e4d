// The entropy coder below ADAPT: intervals of [0, 2^27) to bytes and back (compress/ADAPT.md, chapter 3).
//
// An event is an interval [start, start + size): the share size / 2^27 of all that could have been there. The
// encoder collects the events and codes them from the last to the first into one 64-bit state that sheds
// 32-bit words; the decoder meets them in the order in which they were collected. Source: Duda 2013 (range
// variant of asymmetric numeral systems). The state begins at a plain number that says the last event, so
// that the beginning costs nothing, and its leading zero bytes are not written.
//
// There is exactly one sequence of bytes for each sequence of events: the decoder undoes every step exactly,
// and has to arrive at a state below the bound of the plain number with no byte left.
//
// Thread: plain values. StateReader looks at bytes of someone else, which must outlive it.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "compress/adapt_tables.h"
#include "runtime/base/types.h"

namespace rumor::compress {

class EventList {
 public:
  // Room for this many events, no more (the caller knows a bound).
  explicit EventList(std::size_t events_max) : events_(new Event[events_max]) {}

  // Requires: 1 <= size, start + size <= 2^27. An event that is certain takes nothing.
  void add(std::uint32_t start, std::uint32_t size) { events_[count_++] = {start, size}; }

  // The event after which no other comes: which of how many, as a plain number.
  void end(std::uint32_t number) { last_ = number; }

  // Appends the bytes of all events.
  void write(Bytes& out) const;

 private:
  struct Event {
    std::uint32_t start, size;
  };
  std::unique_ptr<Event[]> events_;
  std::size_t count_ = 0;
  std::uint32_t last_ = 0;
};

class StateReader {
 public:
  explicit StateReader(BytesView body);

  // False when the bytes cannot be an encoder's; the rest of this class is then not to be used.
  bool valid() const { return valid_; }

  // Where in [0, 2^27) the next event lies.
  std::uint32_t slot() const { return static_cast<std::uint32_t>(state_ & (scale - 1)); }

  // Goes past the event, which is the one with slot() in it.
  void take(std::uint32_t start, std::uint32_t size) {
    state_ = size * (state_ >> scale_bits) + (state_ & (scale - 1)) - start;
    if (state_ < least_state && next_ != end_) {
      std::uint32_t word = 0;
      std::memcpy(&word, next_, 4);
      if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap32(word);
      state_ = state_ << 32 | word;
      next_ += 4;
    }
  }

  // The plain number of the last event. False when it is not below `options`, or bytes are left.
  bool end(std::uint32_t options, std::uint32_t& number) const {
    number = static_cast<std::uint32_t>(state_);
    return next_ == end_ && state_ < options;
  }

 private:
  static constexpr std::uint64_t least_state = std::uint64_t{1} << 31;

  std::uint64_t state_ = 0;
  const std::uint8_t* next_ = nullptr;  // words not yet read
  const std::uint8_t* end_ = nullptr;
  bool valid_ = false;
};

}  // namespace rumor::compress
