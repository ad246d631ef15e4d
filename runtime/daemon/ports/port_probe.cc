#include "runtime/daemon/ports/port_probe.h"

#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>

#include "gossip/asio/address.h"
#include "runtime/base/text.h"

namespace rumor::daemon {

using asio::ip::tcp;

Result<void> probe_port(const std::string& address) {
  const auto wanted = net::parse_address(address);
  if (!wanted) return wanted.error();
  asio::io_context io;
  asio::error_code error;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(wanted->host, std::to_string(wanted->port), tcp::resolver::passive, error);
  if (error || found.empty()) return Error{Errc::io, str(address, ": ", error.message())};
  tcp::acceptor acceptor(io);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(1, error);
  if (error) return Error{Errc::io, str(address, ": ", error.message())};
  return {};
}

Result<void> probe_peer(const std::string& address) {
  const auto wanted = net::parse_address(address);
  if (!wanted) return wanted.error();
  asio::io_context io;
  asio::error_code error, outcome = asio::error::timed_out;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(wanted->host, std::to_string(wanted->port), error);
  if (error) return Error{Errc::not_found, error.message()};
  tcp::socket socket(io);
  asio::async_connect(socket, found, [&](const asio::error_code& result, const tcp::endpoint&) { outcome = result; });
  io.run_for(std::chrono::seconds(3));
  if (outcome) return Error{Errc::not_found, outcome.message()};
  return {};
}

}  // namespace rumor::daemon
