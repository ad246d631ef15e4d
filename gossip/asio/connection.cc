#include "gossip/asio/connection.h"

#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <asio/post.hpp>
#include <asio/write.hpp>
#include <cctype>
#include <chrono>
#include <utility>

#include "runtime/base/limits.h"
#include "runtime/base/text.h"
#include "runtime/base/time.h"

namespace rumor::net {
namespace {

constexpr auto handshake_time_max = 5s;
constexpr auto close_time_max = 2s;
constexpr std::size_t gather_bytes = 64 << 10;
constexpr std::uint64_t received_bytes_min = 64 << 10,
                        received_bytes_max = 4 << 20;  // where reading is limited
constexpr int unsent_bytes_max = 128 << 10;            // in the system's queue
constexpr std::size_t read_bytes = 32 << 10;
constexpr std::size_t plaintext_bytes = 16 << 10;  // one TLS record

// TLS answers the peer's key updates unasked, at a price in time and memory. OpenSSL never asks for one by
// itself, so this many bytes of answers in the life of a connection (some 2,000 updates) are generous.
constexpr std::size_t unasked_output_bytes_max = 64 << 10;

static_assert(limits::link_queue_bytes_max > limits::link_backlog_high + limits::frame_bytes_max);

TimePoint clock_now() {
  return TimePoint(std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now().time_since_epoch()));
}

}  // namespace

std::string plain_text(const asio::error_code& error) {
  if (error == asio::error::eof) return "closed by the other end";
  std::string text = error.message();
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

Connection::Connection(asio::ip::tcp::socket socket, const TlsContext& tls, TlsSession::Role role,
                       gossip::LinkId link, ConnectionOwner& owner, std::shared_ptr<RateLimits> limits,
                       std::size_t first_frame_bytes_max)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      write_timer_(socket_.get_executor()),
      read_timer_(socket_.get_executor()),
      limits_(std::move(limits)),
      tls_(tls, role),
      link_(link),
      owner_(&owner),
      reader_(first_frame_bytes_max),
      input_(std::min(read_bytes, limits_->down.quantum())) {}

void Connection::start() {
  asio::error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
#ifdef TCP_NOTSENT_LOWAT
  // Waiting bytes should wait here, where control can still overtake them, and not in the system.
  using NotSentLowat = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_NOTSENT_LOWAT>;
  socket_.set_option(NotSentLowat(unsent_bytes_max), ignored);
#endif
  // A small receive buffer keeps the other side from sending much more than this side reads.
  if (limits_->down.limited()) {
    const std::uint64_t window = limits_->down.bytes_per_second() / 4;
    socket_.set_option(asio::socket_base::receive_buffer_size(static_cast<int>(
                           std::clamp<std::uint64_t>(window, received_bytes_min, received_bytes_max))),
                       ignored);
  }
  set_deadline(handshake_time_max, "TLS handshake timed out");
  continue_handshake();
  if (state_ != State::closed) read();
}

void Connection::send(gossip::OutFrame frame, gossip::Lane lane) {
  if (state_ != State::open) return;
  queue_.push(std::move(frame), lane);
  schedule_pump();
}

void Connection::close(const std::string& reason) {
  if (state_ != State::open) return;
  state_ = State::flushing;
  close_reason_ = reason;
  set_deadline(close_time_max, reason);
  schedule_pump();
}

void Connection::drop(const std::string& reason) {
  if (state_ != State::open) return;
  queue_ = {};
  asio::post(socket_.get_executor(), [self = shared_from_this(), reason] { self->finish(reason); });
}

void Connection::abandon() {
  owner_ = nullptr;
  shut();
}

// ---- reading ----

bool Connection::must_wait(const RateLimit& limit, asio::steady_timer& timer, void (Connection::*again)()) {
  if (!limit.limited() || limit.free_at() <= clock_now()) return false;
  timer.expires_at(std::chrono::steady_clock::time_point(limit.free_at().time_since_epoch()));
  timer.async_wait([self = shared_from_this(), again](const asio::error_code& error) {
    if (!error && self->state_ != State::closed) (self.get()->*again)();
  });
  return true;
}

void Connection::read() {
  if (must_wait(limits_->down, read_timer_, &Connection::read)) return;
  socket_.async_read_some(asio::buffer(input_),
                          [self = shared_from_this()](const asio::error_code& error, std::size_t size) {
                            self->on_read(error, size);
                          });
}

void Connection::on_read(const asio::error_code& error, std::size_t size) {
  if (state_ == State::closed) return;
  limits_->down.book(size, clock_now());
  owner_->connection_bytes(0, size);
  if (state_ == State::flushing || state_ == State::draining) {
    if (error) return finish(close_reason_);
    return read();  // nobody wants these bytes, but the end of the stream behind them matters
  }
  if (error) {
    if (state_ == State::handshaking) return finish(str("TLS handshake failed: ", plain_text(error)));
    return finish(error == asio::error::eof ? "connection lost"
                                            : str("connection lost: ", plain_text(error)));
  }
  tls_.feed({input_.data(), size});
  if (state_ == State::handshaking) continue_handshake();
  const std::size_t output_before = tls_.output_bytes();
  if (state_ == State::open) deliver();
  if (state_ == State::closed) return;
  unasked_output_bytes_ += tls_.output_bytes() - output_before;
  if (unasked_output_bytes_ > unasked_output_bytes_max)
    return finish("the peer asks for key updates without end");
  pump();
  if (state_ != State::closed) read();
}

void Connection::continue_handshake() {
  const Result<bool> done = tls_.handshake();
  if (!done) {
    send_last_words();
    return finish(done.error().text);
  }
  pump();
  if (!*done || state_ != State::handshaking) return;
  state_ = State::open;
  ++deadline_number_;
  timer_.cancel();
  owner_->connection_open(*this);
}

void Connection::deliver() {
  std::array<std::uint8_t, plaintext_bytes> plaintext;
  while (state_ == State::open) {
    const Result<std::size_t> got = tls_.read(plaintext);
    if (!got) {
      send_last_words();
      return finish(got.error().text);
    }
    if (tls_.ended()) return finish("closed by the other end");
    if (*got == 0) return;
    if (!deliver_frames({plaintext.data(), *got})) return;
  }
}

// False when the connection is no longer open.
bool Connection::deliver_frames(BytesView plaintext) {
  while (const auto frame = reader_.next(plaintext)) {
    owner_->connection_frame(*this, *frame);
    check_backlog();  // at once: thousands of small frames may be answered before the next write
    if (state_ != State::open) return false;
  }
  if (reader_.error().empty()) return true;
  finish(reader_.error());
  return false;
}

// ---- writing ----

void Connection::schedule_pump() {
  if (pump_posted_) return;
  pump_posted_ = true;
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    self->pump_posted_ = false;
    self->pump();
  });
}

// Keeps the socket busy while there is anything to send, then does what close() asked for.
void Connection::pump() {
  if (state_ == State::closed) return;
  if (!writing_ && !waits_to_write_ && state_ != State::draining) {
    waits_to_write_ = must_wait(limits_->up, write_timer_, &Connection::pump_again);
    if (waits_to_write_) return check_backlog();
    fill_output();
    if (state_ == State::closed) return;
    if (!output_.empty()) {
      writing_ = true;
      limits_->up.book(output_.size(), clock_now());
      asio::async_write(socket_, asio::buffer(output_),
                        [self = shared_from_this()](const asio::error_code& error, std::size_t size) {
                          self->on_write(error, size);
                        });
    } else if (state_ == State::flushing) {
      asio::error_code ignored;
      socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
      state_ = State::draining;
    }
  }
  check_backlog();
}

void Connection::pump_again() {
  waits_to_write_ = false;
  pump();
}

void Connection::fill_output() {
  output_.clear();
  if (state_ != State::handshaking && !queue_.empty()) {
    plaintext_.clear();
    queue_.gather(plaintext_, std::min(gather_bytes, limits_->up.quantum()));
    if (const Result<void> written = tls_.write(plaintext_); !written) return finish(written.error().text);
    if (plaintext_.capacity() > 4 * gather_bytes) Bytes().swap(plaintext_);
  }
  if (state_ == State::flushing && queue_.empty() && !ended_) {
    ended_ = true;
    tls_.end();
  }
  tls_.take_output(output_);
}

void Connection::on_write(const asio::error_code& error, std::size_t size) {
  if (state_ == State::closed) return;
  writing_ = false;
  owner_->connection_bytes(size, 0);
  if (!error) return pump();
  // The reading side may still hold the peer's last frames or the alert that explains this: it ends the
  // connection.
  writing_ = true;
  if (state_ == State::open) set_deadline(close_time_max, str("connection lost: ", plain_text(error)));
}

void Connection::check_backlog() {
  if (state_ != State::open) return;
  const std::size_t queued = queued_bytes(), urgent = queued - queue_.bulk_bytes();
  // A driver stops pushing when there is a backlog. This is the last resort for what it must answer all the same.
  if (queued > limits::link_queue_bytes_max)
    return finish(str("the peer does not read: ", queued >> 20, " MiB wait for it"));
  const gossip::BacklogMarks& marks = limits_->marks;
  const bool full = backlog_full_ ? urgent >= marks.low : urgent > marks.high;
  if (full == backlog_full_) return;
  backlog_full_ = full;
  owner_->connection_backlog(*this, full);
}

// ---- ending ----

void Connection::set_deadline(asio::steady_timer::duration after, std::string reason) {
  const std::uint64_t number = ++deadline_number_;
  timer_.expires_after(after);
  timer_.async_wait(
      [self = shared_from_this(), number, reason = std::move(reason)](const asio::error_code& error) {
        if (!error && number == self->deadline_number_ && self->state_ != State::closed) self->finish(reason);
      });
}

// A TLS alert, if it can leave without waiting: it tells the other end why.
void Connection::send_last_words() {
  if (writing_) return;
  Bytes alert;
  tls_.take_output(alert);
  asio::error_code ignored;
  socket_.non_blocking(true, ignored);
  if (!alert.empty()) socket_.write_some(asio::buffer(alert), ignored);
}

void Connection::finish(const std::string& reason) {
  if (state_ == State::closed) return;
  ConnectionOwner* owner = std::exchange(owner_, nullptr);
  shut();
  owner->connection_closed(*this, reason);
}

void Connection::shut() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  ++deadline_number_;
  timer_.cancel();
  write_timer_.cancel();
  read_timer_.cancel();
  asio::error_code ignored;
  socket_.close(ignored);
}

}  // namespace rumor::net
