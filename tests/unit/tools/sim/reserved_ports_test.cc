#include "tools/sim/reserved_ports.h"

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <set>

using namespace rumor;
using asio::ip::tcp;

BOOST_AUTO_TEST_SUITE(reserved_ports)

namespace {

tcp::endpoint on_loopback(std::uint16_t port) {
  return {asio::ip::address_v4::loopback(), port};
}

// The error of a socket that listens on this port, as peers do (shared) or as other programs may.
asio::error_code listens(std::uint16_t port, bool shared) {
  asio::io_context io;
  tcp::acceptor acceptor(io, tcp::v4());
  asio::error_code error;
  acceptor.set_option(tcp::acceptor::reuse_address(shared));
  acceptor.bind(on_loopback(port), error);
  if (!error) acceptor.listen(1, error);
  if (error) return error;
  tcp::socket socket(io);
  socket.connect(on_loopback(port), error);
  return error;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_port_is_there_for_peers_and_for_nobody_else) {
  tools::ReservedPorts ports;
  const auto some = ports.reserve(25).value(), more = ports.reserve(25).value();
  std::set<std::uint16_t> all(some.begin(), some.end());
  all.insert(more.begin(), more.end());
  BOOST_TEST(all.size() == 50u);
  for (const std::uint16_t port : all) {
    BOOST_TEST(listens(port, false) == asio::error::address_in_use);
    BOOST_TEST(listens(port, true) == asio::error_code());
    BOOST_TEST(listens(port, true) == asio::error_code(), "a peer that comes again");
    BOOST_TEST(listens(port, false) == asio::error::address_in_use);
  }
}

BOOST_AUTO_TEST_CASE(a_port_that_is_only_reserved_refuses) {
  tools::ReservedPorts ports;
  asio::io_context io;
  tcp::socket socket(io);
  asio::error_code error;
  socket.connect(on_loopback(ports.reserve(1).value()[0]), error);
  BOOST_TEST(error == asio::error::connection_refused);
}

BOOST_AUTO_TEST_CASE(ports_are_given_back) {
  std::optional<tools::ReservedPorts> ports(std::in_place);
  const std::uint16_t port = ports->reserve(1).value()[0];
  BOOST_TEST(listens(port, false) == asio::error::address_in_use);
  ports.reset();
  BOOST_TEST(listens(port, false) == asio::error_code());
}

BOOST_AUTO_TEST_SUITE_END()
