// Connection: one TCP connection with TLS and frames on it, from the handshake to the last byte.
//
//   handshaking -> open -> flushing -> draining -> closed
//
// flushing: close() was called; what is queued still leaves. draining: our side is shut, and the peer's end
// of stream is awaited, so that the system does not throw away bytes in flight. From each state but `open` a
// deadline leads to closed, and so does any error from everywhere.
//
// Writing: send() only queues. Everything queued during one turn of the event loop is gathered, the urgent
// first, into one TLS write of about 64 KiB and one socket write; the next follows when the system has
// taken that. A small frame costs a copy, not a system call.
//
// Thread: the io_context's. Lifetime: handlers in flight hold the connection; the owner is told of the end
// once and never called after abandon().
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <string>

#include "gossip/asio/frames.h"
#include "gossip/asio/rate_limit.h"
#include "gossip/asio/tls.h"
#include "gossip/contract/events.h"
#include "runtime/base/limits.h"

namespace rumor::net {

class Connection;

// The receiver of a connection's events. None of these functions is called from inside one of Connection's own public
// functions but start(), so an owner may call those from anywhere. A connection may be closed or abandoned within any
// of these.
class ConnectionOwner {
 public:
  virtual ~ConnectionOwner() = default;
  virtual void connection_open(Connection& connection) = 0;
  virtual void connection_frame(Connection& connection, BytesView frame) = 0;
  virtual void connection_backlog(Connection& connection, bool full) = 0;
  virtual void connection_bytes(std::size_t sent, std::size_t received) = 0;
  virtual void connection_closed(Connection& connection, const std::string& reason) = 0;  // the last call
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `owner` must live until connection_closed() or abandon().
  Connection(asio::ip::tcp::socket socket, const TlsContext& tls, TlsSession::Role role, gossip::LinkId link,
             ConnectionOwner& owner, std::shared_ptr<RateLimits> limits,
             std::size_t first_frame_bytes_max = limits::hello_bytes_max);

  void start();
  // Ignored unless open.
  void send(gossip::OutFrame frame, gossip::Lane lane);
  // Queued frames leave first, for 2 s at most. `reason` comes back in connection_closed(). Ignored unless
  // open.
  void close(const std::string& reason);
  // Throws away what is queued and ends: from the event loop, with a word to the owner. Ignored unless open.
  void drop(const std::string& reason);
  // Ends at once, without a word to the owner.
  void abandon();

  gossip::LinkId link() const { return link_; }
  const NodeId& peer() const { return tls_.peer(); }  // once connection_open() was called
  bool handshaking() const { return state_ == State::handshaking; }
  std::size_t queued_bytes() const { return queue_.bytes() + (writing_ ? output_.size() : 0); }

 private:
  enum class State { handshaking, open, flushing, draining, closed };

  void read();
  void on_read(const asio::error_code& error, std::size_t size);
  void continue_handshake();
  void deliver();
  bool deliver_frames(BytesView plaintext);
  void schedule_pump();
  void pump();
  void pump_again();
  void fill_output();
  void on_write(const asio::error_code& error, std::size_t size);
  void check_backlog();
  void set_deadline(asio::steady_timer::duration after, std::string reason);
  void send_last_words();
  void finish(const std::string& reason);
  void shut();

  // True: not yet. `again` follows when the limit allows more.
  bool must_wait(const RateLimit& limit, asio::steady_timer& timer, void (Connection::*again)());

  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_, write_timer_, read_timer_;
  const std::shared_ptr<RateLimits> limits_;
  bool waits_to_write_ = false;
  TlsSession tls_;
  const gossip::LinkId link_;
  ConnectionOwner* owner_;  // null once closed
  State state_ = State::handshaking;

  FrameReader reader_;
  FrameQueue queue_;
  Bytes input_;      // ciphertext, while a read is under way
  Bytes output_;     // ciphertext, while a write is under way
  Bytes plaintext_;  // gathered frames; kept for its capacity
  bool writing_ = false;
  bool pump_posted_ = false;
  bool backlog_full_ = false;
  bool ended_ = false;  // tls_.end() was called
  std::string close_reason_;
  std::size_t unasked_output_bytes_ = 0;  // that reading has made TLS say, so far
  std::uint64_t deadline_number_ = 0;  // a timer that fires with an older number is void
};

// "connection refused": an error of the system as part of a line.
std::string plain_text(const asio::error_code& error);

}  // namespace rumor::net
