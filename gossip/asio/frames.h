// Frames on a byte stream: how they are cut apart on arrival and put in order for leaving.
//
// A frame on the wire is its length (u32, little-endian, 1..limits::frame_bytes_max), then that many bytes.
// The length is checked before anything is allocated for it, and a body's memory grows with the bytes that
// have really come.
//
// Thread: one owner each. No sockets.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "gossip/contract/events.h"
#include "runtime/base/limits.h"
#include "runtime/base/types.h"

namespace rumor::net {

// Cuts a stream, given in pieces of any size, into frames.
//
//   BytesView input = ...;
//   while (auto frame = reader.next(input)) use(*frame);
//   if (!reader.error().empty()) close the connection;
//
// A frame that lies in one piece of input is not copied. Memory: at most twice the frame that is arriving.
class FrameReader {
 public:
  // The first frame, which comes from a stranger, may be kept shorter.
  explicit FrameReader(std::size_t first_bytes_max = limits::frame_bytes_max) : bytes_max_(first_bytes_max) {}

  // Takes bytes off the front of `input` up to the end of the next frame. Nothing: `input` is used up, or
  // error() says what is wrong with it, now and on every later call. The view holds until the next call or
  // until `input`'s bytes go.
  std::optional<BytesView> next(BytesView& input);

  // Empty, or one line about a length that no frame has.
  const std::string& error() const { return error_; }

 private:
  bool take_length(BytesView& input);

  std::size_t bytes_max_;  // of the next frame
  std::array<std::uint8_t, 4> length_{};
  std::size_t length_size_ = 0;  // bytes of length_ that have come
  std::size_t body_size_ = 0;    // as length_ says, once it is complete
  Bytes body_;
  bool body_given_ = false;  // body_ was returned by the last call
  std::string error_;
};

// Frames that wait to leave on one connection, lane by lane, each in the order given. Control goes before
// all; bulk when no live data waits, and once after each bulk_share live frames, so that it never starves.
class FrameQueue {
 public:
  // Requires: 1 <= frame.size() <= limits::frame_bytes_max.
  void push(gossip::OutFrame frame, gossip::Lane lane);

  // Appends frames, each with its length, to `out` until that holds `bytes_wanted` or more, or the next frame
  // would pass it; one frame at least when there is one.
  void gather(Bytes& out, std::size_t bytes_wanted);

  bool empty() const { return control_.empty() && live_.empty() && bulk_.empty(); }
  // Bytes of the waiting frames, lengths included.
  std::size_t bytes() const { return bytes_; }
  std::size_t bulk_bytes() const { return bulk_bytes_; }

 private:
  static constexpr std::uint32_t bulk_share = 4;

  std::deque<gossip::OutFrame>& next_lane();

  std::deque<gossip::OutFrame> control_, live_, bulk_;
  std::size_t bytes_ = 0, bulk_bytes_ = 0;
  std::uint32_t live_in_a_row_ = 0;
};

}  // namespace rumor::net
