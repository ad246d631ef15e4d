// The protocol's inputs and effects: its whole contract with a driver.
//
// A driver (gossip/asio over sockets, runtime/sim in virtual time) calls the protocol's handlers with an
// input and the current time, then carries out the effects it finds in the outbox, in order. There are no
// callbacks into the driver. After each call the driver asks next_deadline() and calls on_time() when it is
// reached; early or spare calls are harmless.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/limits.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

// One authenticated connection, in either direction. Chosen by the driver, never reused within a process.
enum class LinkId : std::uint64_t {};

// ---- inputs (each is an argument list of a Protocol handler) ----

// A connection is up and the other end has proven to hold `peer`'s key.
struct LinkUp {
  LinkId link;
  NodeId peer;
  bool dialled_by_us = false;
  std::string remote_address;  // as dialled, or as seen by the socket
};

// ---- effects ----

// How urgent a frame is. More urgent frames overtake those that have not left yet; within a lane frames arrive in
// order.
enum class Lane : std::uint8_t {
  control,  // small frames
  live,     // payloads of updates
  bulk,     // snapshots: leave when nothing else waits, and get a share of the uplink at all times
};

// A frame to send: type byte and body, no length prefix. Payload bytes are not copied for each link: a frame may end
// with a part of a buffer, which it shares with the frames of other links and with the store.
struct OutFrame {
  Bytes head;
  std::shared_ptr<const Bytes> shared;  // null: `head` is all
  std::size_t begin = 0, count = 0;     // the part of *shared that follows the head

  OutFrame() = default;
  OutFrame(Bytes whole) : head(std::move(whole)) {}

  std::size_t size() const { return head.size() + count; }
  BytesView tail() const { return shared ? BytesView(*shared).subspan(begin, count) : BytesView(); }
  // Returns the frame in one piece, and uses it up.
  Bytes joined() && {
    const BytesView rest = tail();
    head.insert(head.end(), rest.begin(), rest.end());
    return std::move(head);
  }
};

// Numbers of unsent bytes on a link, bulk left aside. The driver reports a backlog above `high`, and its end below
// `low`.
struct BacklogMarks {
  std::size_t high = limits::link_backlog_high, low = limits::link_backlog_low;
};

// Queue one frame on a link.
struct Send {
  LinkId link;
  OutFrame frame;
  Lane lane = Lane::control;
};

// Open a connection to host:port. Ends in on_link_up(dialled_by_us) or on_dial_failed(address, reason).
struct Dial {
  std::string address;
};

// Send what is queued, then close the link. on_link_down() follows.
struct Close {
  LinkId link;
  std::string reason;
};

// One line for people. Never acted upon.
struct Note {
  enum class Level : std::uint8_t { debug, info, warning, error };
  Level level = Level::info;
  std::string text;
};

using Effect = std::variant<Send, Dial, Close, Note>;
using Outbox = std::vector<Effect>;

}  // namespace rumor::gossip
