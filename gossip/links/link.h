// Link: one connection to another node, as far as the session and every exchange share it.
//
// Overlay and the exchange each keep a state of their own about a link, in `overlay` and `exchange`; only its owner
// looks inside. Nobody removes a link inside a handler: Core::close() marks it, and Protocol detaches it at the end of
// the turn, so pointers and loops stay good.
//
// Thread: one owner, as Protocol. Memory: bounded by PROTOCOL.md, section 8.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gossip/contract/events.h"
#include "gossip/contract/link_coder.h"
#include "gossip/wire/wire.h"
#include "runtime/base/limits.h"
#include "runtime/base/time.h"

namespace rumor::gossip {

// Base of the states that parts keep about a link.
struct LinkState {
  virtual ~LinkState() = default;
};

// A payload that arrives in pieces: its DATA, and the bytes so far.
struct Arriving {
  Data head;
  Bytes bytes;
  bool lacked = false;  // when it began
};

struct Link {
  // beside: admitted to the pipeline and of another stage, so no exchange of this run uses it.
  enum class State : std::uint8_t { greeting, admitted, beside, closing };

  // The connection.
  LinkId id{};
  NodeId node;
  std::string address;
  bool dialled_by_us = false;
  State state = State::greeting;
  bool detached = false;  // Overlay and the exchange have let go of it
  std::string close_reason;
  TimePoint up_at, admitted_at, heard_at, sent_at;
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  std::optional<Duration> round_trip;  // of the last PING that was answered, probes aside
  std::uint64_t control_left = limits::control_burst;  // see Core::charge()
  TimePoint control_at;                                // control_left is of then

  // From the two greetings and the last DIGEST.
  std::uint32_t stage = 0;       // of their node, once the link is admitted; 0: the run is no stage of a pipeline
  StreamId their_stream;         // of their process
  bool observer = false;         // it may not bring updates of its own
  std::uint32_t codings = 0;     // what the other side decodes
  ReplicaDigest hello_replica;   // ours, as our HELLO said
  std::optional<Digest> digest;  // their last

  // Payloads (link_payload.h).
  std::unique_ptr<LinkCoder> coder;
  std::optional<Arriving> arriving;
  TimePoint data_at;                      // last payload from it
  TimePoint progress_at;                  // last payload from it that we lacked
  bool live_sent = false;                 // a frame has left in the lane of payloads; a probe clears this
  bool backlogged = false;                // the driver has more unsent bytes than it wants
  TimePoint backlog_ended = never;        // never: there was none
  std::uint32_t providing = 0, taking = 0;  // streams that it pushes to us, and that we push to it

  std::unique_ptr<LinkState> overlay, exchange;

  bool admitted() const { return state == State::admitted; }
  bool has_member() const { return admitted() || state == State::beside; }
};

}  // namespace rumor::gossip
