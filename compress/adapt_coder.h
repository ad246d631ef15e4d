// The entropy coder below ADAPT: intervals of [0, 2^27) to bytes and back (compress/ADAPT.md, chapter 3).
//
// An event is an interval [start, start + size): the share size / 2^27 of all that could have been there. The
// encoder collects the events and codes them from the last to the first into 64-bit states that shed 32-bit
// words; the decoder meets them in the order in which they were collected. Source: Duda 2013 (range variant
// of asymmetric numeral systems). There are two states, so that a decoder can find the next rows while it
// still finds the columns of this one: `entries` for columns and signs, `rows` for all else.
//
// The state of the rows costs next to nothing: it begins as the last word that the state of the entries
// shed (no other state is needed for the last few entries), and ends up as events of that state.
//
// There is exactly one sequence of bytes for each sequence of events: the decoder undoes every step exactly,
// and has to arrive at a state below the bound of the plain number with no byte left.
//
// Thread: plain values. StateReader works in bytes of someone else, which must outlive it.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>

#include "compress/adapt_tables.h"
#include "runtime/base/types.h"

namespace rumor::compress {

// Which state an event belongs to while they are apart.
enum class Lane : std::uint8_t { entries = 0, rows = 1 };

class EventList {
 public:
  // Room for this many events, no more (the caller knows a bound).
  explicit EventList(std::size_t events_max) : events_(new Event[events_max]) {}

  // Requires: 1 <= size, start + size <= 2^27. An event that is certain takes nothing.
  void add(Lane lane, std::uint32_t start, std::uint32_t size) {
    events_[count_++] = {start | static_cast<std::uint32_t>(lane) << 31, size};
  }

  // All events so far were in states apart; from here on there is one.
  void join() { joined_at_ = count_, apart_ = true; }

  // The event after which no other comes: which of how many, as a plain number.
  void end(std::uint32_t number) { last_ = number; }

  // Appends the bytes of all events.
  void write(Bytes& out) const;

 private:
  struct Event {
    std::uint32_t start, size;
  };
  std::unique_ptr<Event[]> events_;
  std::size_t count_ = 0, joined_at_ = 0;
  bool apart_ = false;
  std::uint32_t last_ = 0;
};

// A state and where its next word stands.
struct Chain {
  std::uint64_t state = 0;
  std::uint8_t* next = nullptr;
  std::uint8_t* end = nullptr;

  static constexpr std::uint64_t least_state = std::uint64_t{1} << 31;

  // Where in [0, 2^27) the next event lies.
  std::uint32_t slot() const { return static_cast<std::uint32_t>(state & (scale - 1)); }

  // Goes past the event, which is the one with slot() in it.
  void take(std::uint32_t start, std::uint32_t size) {
    state = size * (state >> scale_bits) + (state & (scale - 1)) - start;
    refill();
  }

  // Takes the next word if it is needed and there is one. Without a branch: whether it is needed is as good
  // as random.
  void refill() {
    std::uint32_t word = 0;
    std::memcpy(&word, next, 4);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap32(word);
    const std::uint64_t wanted = (state < least_state ? 1u : 0u) & (next != end ? 1u : 0u);
    next += 4 * wanted;
    state = state << (32 * wanted) | (word & (0 - wanted));
  }
};

class StateReader {
 public:
  static constexpr std::size_t slack = 4;  // bytes that must be readable after the body

  // body: is written to.
  StateReader(std::uint8_t* body, std::size_t size);

  // False when the bytes cannot be an encoder's; the rest of this class is then not to be used.
  bool valid() const { return valid_; }

  // To be called before everything else where there are two states. False as valid().
  bool part();

  // To be called where the states become one. False when they cannot be an encoder's.
  bool join();

  // What finds the events of each lane: put back after use.
  Chain chain(Lane lane) const { return {lane == Lane::rows && apart_ ? rows_ : entries_, next_, end_}; }
  void put_back(Lane lane, const Chain& chain) {
    (lane == Lane::rows && apart_ ? rows_ : entries_) = chain.state;
    next_ = chain.next;
  }

  // The plain number of the last event. False when it is not below `options`, or bytes are left.
  bool end(std::uint32_t options, std::uint32_t& number) const {
    number = static_cast<std::uint32_t>(entries_);
    return next_ == end_ && entries_ < options;
  }

 private:
  std::uint32_t number(unsigned bits);

  // In an order in which no two stand together that are copied together: what has just been written in two
  // pieces is slow to read as one.
  std::uint64_t entries_ = 0;
  std::uint8_t* end_ = nullptr;
  std::uint64_t rows_ = 0;
  bool valid_ = false, apart_ = false;
  std::uint8_t* next_ = nullptr;  // words not yet read
};

}  // namespace rumor::compress
