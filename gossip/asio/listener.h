// Listener: one listening socket. Hands over whoever connects; knows nothing of TLS.
//
// Thread: the io_context's. Running out of file descriptors pauses accepting, it does not end it.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "gossip/asio/address.h"
#include "runtime/base/result.h"

namespace rumor::net {

class Listener : public std::enable_shared_from_this<Listener> {
 public:
  using OnAccept = std::function<void(asio::ip::tcp::socket)>;

  Listener(asio::io_context& io, OnAccept on_accept);

  // Binds, listens and begins to accept; the address that it got, with the real port where 0 was asked for. A
  // host name is looked up at once. Errors: Errc::io, naming the address, the cause and --listen.
  Result<std::string> open(const Address& address);

  // No on_accept follows.
  void close();

 private:
  void accept();
  void pause();

  asio::io_context& io_;
  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer timer_;
  OnAccept on_accept_;
  bool closed_ = false;
};

}  // namespace rumor::net
