#include "gossip/asio/listener.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "gossip/asio/connection.h"
#include "runtime/base/text.h"
#include "runtime/base/time.h"

namespace rumor::net {
namespace {

using Endpoint = asio::ip::tcp::endpoint;

constexpr auto pause_after_error = 100ms;

// Listening sockets of this process. A child of fork(), such as a worker that loads data, would keep the address in use
// after its parent has let go of it, so it closes them. Only what is safe between fork() and exec() happens there.
class ForkedAway {
 public:
  static void add(int socket) {
    static const int registered = pthread_atfork(nullptr, nullptr, close_all);
    static_cast<void>(registered);
    for (std::atomic<int>& one : sockets) {
      int free = none;
      if (one.compare_exchange_strong(free, socket)) return;
    }
  }
  static void remove(int socket) {
    for (std::atomic<int>& one : sockets) {
      int expected = socket;
      if (one.compare_exchange_strong(expected, none)) return;
    }
  }

 private:
  static constexpr int none = 0;  // never a socket of ours: it is stdin, or a program has closed that

  static void close_all() {
    for (std::atomic<int>& one : sockets)
      if (const int socket = one.exchange(none); socket != none) ::close(socket);
  }

  static inline std::array<std::atomic<int>, 64> sockets{};
};

Result<Endpoint> endpoint_of(asio::io_context& io, const Address& address) {
  asio::error_code error;
  const asio::ip::address literal = asio::ip::make_address(address.host, error);
  if (!error) return Endpoint(literal, address.port);
  asio::ip::tcp::resolver resolver(io);
  const auto found = resolver.resolve(address.host, std::to_string(address.port), error);
  if (error || found.empty()) {
    return Error{Errc::io, str("cannot listen on ", address.text(), ": ", plain_text(error),
                               "; give an address of this machine with --listen")};
  }
  return found.begin()->endpoint();
}

}  // namespace

Listener::Listener(asio::io_context& io, OnAccept on_accept)
    : io_(io), acceptor_(io), timer_(io), on_accept_(std::move(on_accept)) {}

Result<std::string> Listener::open(const Address& address) {
  const Result<Endpoint> endpoint = endpoint_of(io_, address);
  if (!endpoint) return endpoint.error();
  asio::error_code error;
  acceptor_.open((*endpoint).protocol(), error);
  // For a restart while old connections linger; two listeners on one port are still refused.
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(*endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  const Endpoint bound = error ? Endpoint() : acceptor_.local_endpoint(error);
  if (error) {
    asio::error_code ignored;
    acceptor_.close(ignored);
    return Error{Errc::io, str("cannot listen on ", address.text(), ": ", plain_text(error),
                               "; choose another with --listen")};
  }
  ForkedAway::add(acceptor_.native_handle());
  accept();
  return Address{bound.address().to_string(), bound.port()}.text();
}

void Listener::close() {
  closed_ = true;
  timer_.cancel();
  if (acceptor_.is_open()) ForkedAway::remove(acceptor_.native_handle());
  asio::error_code ignored;
  acceptor_.close(ignored);
}

void Listener::accept() {
  acceptor_.async_accept(
      [self = shared_from_this()](const asio::error_code& error, asio::ip::tcp::socket socket) {
        if (self->closed_) return;
        if (error && error != asio::error::connection_aborted) return self->pause();
        if (!error) self->on_accept_(std::move(socket));
        if (!self->closed_) self->accept();
      });
}

void Listener::pause() {
  timer_.expires_after(pause_after_error);
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error && !self->closed_) self->accept();
  });
}

}  // namespace rumor::net
