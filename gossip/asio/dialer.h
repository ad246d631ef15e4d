// Dial: one attempt to reach host:port. Resolves the name, then tries its addresses in turn.
//
// 5 s in all until a TCP connection stands, shared evenly by the addresses (at most 4 are tried), so that one
// dead address of a host does not hide a living one. A literal address needs no look-up.
//
// Thread: the io_context's. Name look-ups run on a thread of Asio's; one that outlives the deadline is
// ignored.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gossip/asio/address.h"
#include "runtime/base/result.h"

namespace rumor::net {

class Dial : public std::enable_shared_from_this<Dial> {
 public:
  // Called once, from the event loop, never from within start(), and not at all after cancel().
  using OnDone = std::function<void(Result<asio::ip::tcp::socket>)>;

  Dial(asio::io_context& io, std::string address, OnDone on_done);

  void start();
  void cancel();

 private:
  void resolve(const Address& address);
  void try_next();
  void on_connect(const asio::error_code& error, std::size_t attempt);
  void give_up(const std::string& reason);
  void done(Result<asio::ip::tcp::socket> result);
  void wait(asio::steady_timer::duration time, const std::string& reason);

  const std::string address_;
  OnDone on_done_;  // empty once it was called or cancelled
  asio::ip::tcp::resolver resolver_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer timer_;
  std::vector<asio::ip::tcp::endpoint> endpoints_;
  std::size_t attempt_ = 0;  // counts connects begun; a handler with an older number is void
  asio::steady_timer::duration time_each_{};
  std::string reason_;  // why the last address failed
};

}  // namespace rumor::net
