// The addresses of several peers in one process. tests/system/stages.py runs them.
#include "runtime/daemon/loop/several_stages.h"

#include <boost/test/unit_test.hpp>

using rumor::daemon::address_behind;
using rumor::daemon::dialled_here;

BOOST_AUTO_TEST_SUITE(several_stages)

BOOST_AUTO_TEST_CASE(ports_follow_one_another) {
  BOOST_TEST(*address_behind("127.0.0.1:7001", 0) == "127.0.0.1:7001");
  BOOST_TEST(*address_behind("127.0.0.1:7001", 2) == "127.0.0.1:7003");
  BOOST_TEST(*address_behind("[::1]:7001", 1) == "[::1]:7002");
  BOOST_TEST(*address_behind("host.example:65534", 1) == "host.example:65535");
}

BOOST_AUTO_TEST_CASE(any_free_port_stays_any) { BOOST_TEST(*address_behind("127.0.0.1:0", 3) == "127.0.0.1:0"); }

BOOST_AUTO_TEST_CASE(there_is_no_port_behind_the_last) {
  const auto beyond = address_behind("127.0.0.1:65535", 1);
  BOOST_REQUIRE(!beyond.ok());
  BOOST_TEST((beyond.error().code == rumor::Errc::usage));
  BOOST_TEST(!address_behind("nowhere", 1).ok());
}

BOOST_AUTO_TEST_CASE(a_listener_on_all_addresses_is_dialled_on_loopback) {
  BOOST_TEST(dialled_here("0.0.0.0:7001") == "127.0.0.1:7001");
  BOOST_TEST(dialled_here("[::]:7001") == "[::1]:7001");
  BOOST_TEST(dialled_here("192.0.2.7:7001") == "192.0.2.7:7001");
}

BOOST_AUTO_TEST_SUITE_END()
