#include "gossip/asio/dialer.h"

#include <algorithm>
#include <asio/post.hpp>
#include <system_error>
#include <utility>

#include "gossip/asio/connection.h"
#include "runtime/base/text.h"
#include "runtime/base/time.h"

namespace rumor::net {
namespace {

using asio::ip::tcp;

constexpr asio::steady_timer::duration connect_time_max = 5s;
constexpr std::size_t endpoints_max = 4;

}  // namespace

Dial::Dial(asio::io_context& io, std::string address, OnDone on_done)
    : address_(std::move(address)), on_done_(std::move(on_done)), resolver_(io), socket_(io), timer_(io) {}

void Dial::start() {
  // Posted, so that even a malformed address is reported from the event loop.
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    const Result<Address> address = parse_address(self->address_);
    if (!address) return self->give_up(address.error().text);
    if ((*address).port == 0) return self->give_up("port 0 cannot be dialled");
    self->resolve(*address);
  });
}

void Dial::cancel() {
  on_done_ = nullptr;
  ++attempt_;
  timer_.cancel();
  resolver_.cancel();
  asio::error_code ignored;
  socket_.close(ignored);
}

void Dial::resolve(const Address& address) {
  if (!on_done_) return;
  time_each_ = connect_time_max;
  asio::error_code error;
  const auto literal = asio::ip::make_address(address.host, error);
  if (!error) {
    endpoints_.emplace_back(literal, address.port);
    return try_next();
  }
  const auto on_found = [self = shared_from_this(), host = address.host](
                            const asio::error_code& failed, const tcp::resolver::results_type& found) {
    if (!self->on_done_) return;
    if (failed) return self->give_up(str("cannot resolve ", host, ": ", plain_text(failed)));
    for (const auto& entry : found) {
      const bool known = std::find(self->endpoints_.begin(), self->endpoints_.end(), entry.endpoint()) !=
                         self->endpoints_.end();
      if (!known && self->endpoints_.size() < endpoints_max) self->endpoints_.push_back(entry.endpoint());
    }
    if (self->endpoints_.empty()) return self->give_up(str("cannot resolve ", host, ": no address"));
    self->time_each_ = connect_time_max / static_cast<int>(self->endpoints_.size());
    self->try_next();
  };
  wait(connect_time_max, str("cannot resolve ", address.host, ": timed out"));
  try {
    resolver_.async_resolve(address.host, std::to_string(address.port), on_found);
  } catch (const std::system_error& refused) {  // no thread to be had for the look-up
    give_up(str("cannot resolve ", address.host, ": ", refused.code().message()));
  }
}

// Moves to the next address; with none left, the last one's reason is the dial's.
void Dial::try_next() {
  if (attempt_ == endpoints_.size()) return give_up(reason_);
  const tcp::endpoint endpoint = endpoints_[attempt_++];
  asio::error_code ignored;
  socket_.close(ignored);
  wait(time_each_, "connect timed out");
  socket_.async_connect(endpoint, [self = shared_from_this(), attempt = attempt_](
                                      const asio::error_code& error) { self->on_connect(error, attempt); });
}

void Dial::on_connect(const asio::error_code& error, std::size_t attempt) {
  if (!on_done_ || attempt != attempt_) return;
  if (!error) return done(std::move(socket_));
  reason_ = plain_text(error);
  try_next();
}

void Dial::wait(asio::steady_timer::duration time, const std::string& reason) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this(), attempt = attempt_, reason](const asio::error_code& error) {
    if (error || !self->on_done_ || attempt != self->attempt_) return;
    self->reason_ = reason;
    self->endpoints_.empty() ? self->give_up(reason) : self->try_next();
  });
}

void Dial::give_up(const std::string& reason) {
  if (on_done_) done(Error{Errc::io, reason});
}

void Dial::done(Result<tcp::socket> result) {
  const OnDone on_done = std::exchange(on_done_, nullptr);
  cancel();
  on_done(std::move(result));
}

}  // namespace rumor::net
