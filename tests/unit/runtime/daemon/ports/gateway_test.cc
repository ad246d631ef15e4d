// Which router stands before a listener, and when a port of it is asked for. The asking itself: tests/system/ports.py.
#include <boost/test/unit_test.hpp>

#include <asio/io_context.hpp>

#include "runtime/daemon/ports/gateway.h"
#include "runtime/daemon/ports/reachability.h"
#include "tests/unit/contains.h"

namespace rumor::daemon {
namespace {

using rumor::test::contains;

const char* const header = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";

// The error of port_request() for these addresses.
Error refusal(const std::string& listening, const std::string& router) {
  const auto request = port_request(listening, router);
  BOOST_REQUIRE(!request.ok());
  return request.error();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gateway)

BOOST_AUTO_TEST_CASE(private_addresses_end_where_the_standards_say) {
  for (const char* one : {"10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "169.254.9.9",
                          "127.0.0.1", "100.64.0.1", "100.127.255.255"})
    BOOST_TEST(is_private(one), one);
  for (const char* one : {"9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0",
                          "100.63.255.255", "100.128.0.0", "203.0.113.7", "::1", "", "router"})
    BOOST_TEST(!is_private(one), one);
}

BOOST_AUTO_TEST_CASE(a_router_may_name_an_address_that_is_none) {
  BOOST_TEST(is_ipv4("203.0.113.7"));
  for (const char* one : {"0.0.0.0", "", "1.2.3", "::1", "my.router", "203.0.113.7 "}) BOOST_TEST(!is_ipv4(one), one);
}

BOOST_AUTO_TEST_CASE(the_default_route_of_least_metric_counts) {
  const std::string lan = "eth0\t0001A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
  const std::string slow = "wlan0\t00000000\t0102A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n";
  const std::string fast = "eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n";
  const std::string down = "eth1\t00000000\t0103A8C0\t0002\t0\t0\t1\t00000000\t0\t0\t0\n";
  BOOST_TEST(default_router(header + lan + slow + fast + down) == "192.168.1.1");
  BOOST_TEST(default_router(header + slow) == "192.168.2.1");
  BOOST_TEST(default_router(header + lan + down).empty());
  BOOST_TEST(default_router("").empty());
  BOOST_TEST(default_router("eth0\tzz\n\n\t\t").empty());
}

BOOST_AUTO_TEST_CASE(a_port_is_asked_for_only_where_it_helps) {
  const auto request = port_request("0.0.0.0:7001", "127.0.0.77");
  BOOST_REQUIRE(request.ok());
  BOOST_TEST(request->gateway.router == "127.0.0.77");
  BOOST_TEST(request->gateway.local == "127.0.0.1");
  BOOST_TEST(request->port == 7001);
  BOOST_TEST(port_request("127.0.0.1:7001", "127.0.0.77").ok());
  const Error loopback = refusal("127.0.0.1:7001", "auto");
  BOOST_TEST((loopback.code == Errc::usage));
  BOOST_TEST(contains(loopback.text, "--listen 0.0.0.0:7001"));
  const Error six = refusal("[2001:db8::1]:7001", "auto");
  BOOST_TEST((six.code == Errc::mismatch));
  BOOST_TEST(contains(six.text, "firewall"));
  const Error elsewhere = refusal("192.168.7.7:7001", "127.0.0.77");
  BOOST_TEST((elsewhere.code == Errc::usage));
  BOOST_TEST(contains(elsewhere.text, "leads to this machine as 127.0.0.1"));
  BOOST_TEST(contains(refusal("0.0.0.0:7001", "1.2.3").text, "no IPv4 address of a router"));
}

BOOST_AUTO_TEST_CASE(others_are_told_an_address_that_leads_somewhere) {
  RunConfig config;
  Reachability plain;
  plain.open(config, "127.0.0.1:7001");
  BOOST_TEST(plain.addresses() == std::vector<std::string>{"127.0.0.1:7001"});
  BOOST_TEST(plain.text().empty());
  config.map_port = "127.0.0.77";
  Reachability mapped;
  mapped.open(config, "0.0.0.0:7001");
  BOOST_TEST(mapped.addresses() == std::vector<std::string>{"127.0.0.1:7001"});
  config.advertise = {"peer.example:7001"};
  mapped.open(config, "0.0.0.0:7001");
  BOOST_TEST(mapped.addresses() == config.advertise);
  // Nothing to ask: said once, with the fix.
  config.map_port = "auto";
  Reachability hidden;
  hidden.open(config, "127.0.0.1:7001");
  asio::io_context io;
  std::string said;
  hidden.begin(io, [&](gossip::Note::Level level, const std::string& text, bool moved) {
    said += text;
    BOOST_TEST((level == gossip::Note::Level::warning));
    BOOST_TEST(!moved);
  });
  BOOST_TEST(said == "no port is asked of a router: " + hidden.text());
  BOOST_TEST(contains(said, "--listen 0.0.0.0:7001"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::daemon
