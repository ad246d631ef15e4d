// The entropy coder below ADAPT: intervals of [0, 2^27) to bytes and back (compress/ADAPT.md, chapter 3).
//
// An event is an interval [start, start + size): the share size / 2^27 of all possibilities. The encoder collects the
// events and codes them from the last to the first into 64-bit states that shed 32-bit words. The decoder meets them in
// the order in which they were collected. Source: Duda 2013 (range variant of asymmetric numeral systems). There are
// two states, `near` and `far`, and so two chains of events that do not wait for each other. Neighbouring events are
// dealt out to both.
//
// The far state costs next to nothing: it begins as the last word that the near state shed (the last few entries need
// no other state), and ends as events of that state.
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

#include "compress/link/adapt_tables.h"
#include "runtime/base/types.h"

namespace rumor::compress {

// Which state an event belongs to while they are apart.
enum class Lane : std::uint8_t { near = 0, far = 1 };

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

  // The slot in [0, 2^27) of the next event of this lane.
  std::uint32_t slot(Lane lane) const {
    return static_cast<std::uint32_t>(state_[place(lane)] & (scale - 1));
  }

  // Goes past the event of this size, the one with slot() in it. inside: how far slot() is from its start.
  void take(Lane lane, std::uint32_t inside, std::uint32_t size) {
    std::uint64_t& state = state_[place(lane)];
    state = refilled(size * (state >> scale_bits) + inside);
  }

  // The plain number of the last event. False when it is not below `options`, or bytes are left.
  bool end(std::uint32_t options, std::uint32_t& number) const {
    number = static_cast<std::uint32_t>(state_[0]);
    return next_ == end_ && state_[0] < options;
  }

 private:
  static constexpr std::uint64_t least_state = std::uint64_t{1} << 31;

  // By place, not by condition: neither state is to wait for the other.
  std::size_t place(Lane lane) const { return static_cast<std::size_t>(lane) & apart_; }

  // With the next word if it is needed and there is one. Without a branch: whether it is needed is as good as
  // random.
  std::uint64_t refilled(std::uint64_t state) {
    std::uint32_t word = 0;
    std::memcpy(&word, next_, 4);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap32(word);
    const std::uint64_t wanted = (state < least_state ? 1u : 0u) & (next_ != end_ ? 1u : 0u);
    next_ += 4 * wanted;
    return state << (32 * wanted) | (word & (0 - wanted));
  }
  std::uint32_t number(unsigned bits);

  std::array<std::uint64_t, 2> state_{};  // near and far
  std::uint8_t* next_ = nullptr;          // words not yet read
  std::uint8_t* end_ = nullptr;
  std::size_t apart_ = 0;  // 1 while there are two states
  bool valid_ = false;
};

}  // namespace rumor::compress
