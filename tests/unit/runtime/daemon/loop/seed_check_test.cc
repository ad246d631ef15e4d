#include "runtime/daemon/loop/seed_check.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/contains.h"

using namespace rumor;
using namespace rumor::daemon;
using rumor::test::contains;

namespace {

// A name service of three hosts.
Lookup pretend(const std::string& host) {
  if (host == "gone.example") return Lookup::unknown;
  return host == "slow.example" ? Lookup::failed : Lookup::found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(seed_check)

BOOST_AUTO_TEST_CASE(seeds_that_can_work_pass_without_a_word) {
  const auto checked = check_seeds({"127.0.0.1:7711", "[::1]:7712", "here.example:7713"}, 0, pretend);
  BOOST_REQUIRE(checked.ok());
  BOOST_TEST(checked->warnings.empty());
  BOOST_TEST(check_seeds({}, 0, pretend).ok());
}

BOOST_AUTO_TEST_CASE(a_seed_without_a_port_is_an_error) {
  for (const char* seed : {"127.0.0.1", "here.example", "here.example:", "127.0.0.1:0", "here.example:99999", ""}) {
    const auto refused = check_seeds({"127.0.0.1:7711", seed}, 5, pretend);
    BOOST_REQUIRE_MESSAGE(!refused.ok(), seed);
    BOOST_TEST((refused.error().code == Errc::usage));
    BOOST_TEST(contains(refused.error().text, "write host:port"));
  }
}

BOOST_AUTO_TEST_CASE(names_that_nobody_knows_are_an_error_when_there_is_nothing_else) {
  const auto refused = check_seeds({"gone.example:7711"}, 0, pretend);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == Errc::usage));
  BOOST_TEST(contains(refused.error().text, "gone.example:7711"));
  BOOST_TEST(!check_seeds({"gone.example:7711", "gone.example:7712"}, 0, pretend).ok());
}

BOOST_AUTO_TEST_CASE(one_unknown_name_among_others_is_a_warning) {
  const auto checked = check_seeds({"gone.example:7711", "127.0.0.1:7712"}, 0, pretend);
  BOOST_REQUIRE(checked.ok());
  BOOST_REQUIRE(checked->warnings.size() == 1u);
  BOOST_TEST(contains(checked->warnings[0], "gone.example:7711"));
  // Addresses from an earlier life are something else to try.
  BOOST_TEST(check_seeds({"gone.example:7711"}, 1, pretend).ok());
}

BOOST_AUTO_TEST_CASE(a_name_service_that_does_not_answer_is_a_warning_and_not_asked_again) {
  int asked = 0;
  const auto counted = [&](const std::string& host) {
    ++asked;
    return pretend(host);
  };
  const auto checked =
      check_seeds({"127.0.0.1:7710", "slow.example:7711", "here.example:7712", "[::1]:7713"}, 0, counted);
  BOOST_REQUIRE(checked.ok());
  BOOST_TEST(checked->warnings.size() == 2u);  // both names, and no address
  BOOST_TEST(asked == 1);
}

BOOST_AUTO_TEST_CASE(the_system_knows_itself) {
  BOOST_TEST((look_up("localhost") == Lookup::found));
  BOOST_TEST((look_up("no-such-host.invalid") != Lookup::found));  // RFC 6761
}

BOOST_AUTO_TEST_SUITE_END()
