// Transport: authenticated connections that carry frames. What gossip/contract/events.h asks of a driver, over real
// sockets.
//
// Every link is TCP with TLS 1.3 on it (tls.h): both ends have proven their Ed25519 keys, and the NodeId of a
// link is the peer's key. Transport frames bytes and moves them; who may stay, what a frame means, and when
// to dial again is decided above. It admits every key: admission is the protocol's.
//
// Thread: all of it belongs to the one thread that runs the io_context; construct and destroy it there, or
// while nobody runs it. No event is ever called from within one of Transport's functions, so a driver may
// carry out effects in a row and see what came of them afterwards. Events may call any function, but not
// destroy the transport.
//
// Order: on_link_up comes first on a link, then its frames in the order they were sent (those of a more
// urgent lane may overtake), on_backlog in between, on_link_down once at the end. Link ids count up and are
// never used again.
//
// Limits: frames of limits::frame_bytes_max; 64 accepted connections that have not finished their handshake,
// 4 of them from one address but loopback (the oldest goes), 512 connections in all (new ones are refused);
// connecting 5 s, handshake 5 s, closing 2 s; a link on which 64 MiB wait is closed.
//
// Memory: about 100 KiB a link at rest, plus its queued frames and the frame that is arriving.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "gossip/asio/identity.h"
#include "gossip/contract/events.h"
#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::net {

// The receiver of events, called on the io_context's thread. Reasons are one plain line without a full stop:
// "connection refused".
class TransportEvents {
 public:
  virtual ~TransportEvents() = default;

  virtual void on_link_up(const gossip::LinkUp& up) = 0;
  // `frame` is valid during the call; 1..limits::frame_bytes_max bytes.
  virtual void on_frame(gossip::LinkId link, BytesView frame) = 0;
  // Exactly once for each on_link_up, but not after stop(). After Transport::close() with the reason given
  // there.
  virtual void on_link_down(gossip::LinkId link, const std::string& reason) = 0;
  // A dial came to nothing, the handshake included. `address` as it was given to dial().
  virtual void on_dial_failed(const std::string& address, const std::string& reason) = 0;
  // More bytes, bulk left aside, wait on this link than mark_backlogs() says (true); fewer again (false).
  virtual void on_backlog(gossip::LinkId link, bool full) = 0;
  // Somebody connected to us and did not get as far as a link. For a log; the address is the socket's.
  virtual void on_refused(const std::string& /*remote_address*/, const std::string& /*reason*/) {}
};

// Bytes on the sockets since start, TLS and TCP payload included, handshakes too.
struct Traffic {
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;
};

class Transport {
 public:
  // `io` and `events` must outlive the transport. Nothing happens until io is run.
  Transport(asio::io_context& io, Identity identity, TransportEvents& events);
  ~Transport();  // stop()
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // Accepts connections at "host:port", port 0 for any free one. Returns the address with the real port. May
  // be called several times. Errors: Errc::usage (malformed), Errc::io ("cannot listen on 127.0.0.1:7001:
  // address already in use; choose another with --listen").
  Result<std::string> listen(const std::string& host_port);

  // The most bytes that the first frame of a connection may have: limits::hello_bytes_max unless said otherwise. For
  // connections that come after.
  void limit_first_frame(std::size_t bytes_max);

  // Bytes a second over all links together, TLS included; 0: no limit. Obeyed within a few percent over a
  // second or more. For connections that come after.
  void limit_rates(std::uint64_t up_bytes_per_second, std::uint64_t down_bytes_per_second);

  // When a link counts as backlogged; gossip::BacklogMarks{} unless said otherwise.
  void mark_backlogs(const gossip::BacklogMarks& marks);

  // Ends in on_link_up (dialled_by_us, remote_address == host_port) or in on_dial_failed. Dialling an address
  // twice makes two links.
  void dial(const std::string& host_port);

  // Queues one frame. Ignored when the link is down or closing. Requires: 1..limits::frame_bytes_max bytes.
  void send(gossip::LinkId link, gossip::OutFrame frame, gossip::Lane lane);

  // Queued frames leave (2 s at most), then the link closes; nothing more is delivered from it.
  // on_link_down follows. Ignored when the link is down or closing already.
  void close(gossip::LinkId link, const std::string& reason);

  // Cuts everything at once: no event follows, queued frames are lost, the io_context runs out of work. To go
  // in peace, close() the links and await their on_link_down first.
  void stop();

  NodeId id() const;
  Traffic traffic() const;
  // Links that are up, closing ones included.
  std::size_t links() const;
  // Bytes that wait on a link; 0 when it is down.
  std::size_t queued_bytes(gossip::LinkId link) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rumor::net
