#include "runtime/base/text.h"

#include <boost/test/unit_test.hpp>

namespace rumor {
namespace {

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(str_joins_parts_of_any_kind) {
  BOOST_TEST(str("a", 1, 2.5, 'c', std::string("d")) == "a12.5cd");
}

BOOST_AUTO_TEST_CASE(fixed_rounds_to_the_digits_asked_for) {
  BOOST_TEST(fixed(2.0 / 3, 2) == "0.67");
  BOOST_TEST(fixed(1.0, 0) == "1");
  BOOST_TEST(fixed(-0.5, 3) == "-0.500");
  BOOST_TEST(fixed(88.904, 1) == "88.9");
  BOOST_TEST(fixed(1e15, 1) == "1000000000000000.0");
}

BOOST_AUTO_TEST_CASE(nearest_finds_what_was_meant) {
  const std::vector<std::string> keys = {"density", "seed", "samples", "learning_rate"};
  BOOST_TEST(nearest("densitty", keys) == "density");
  BOOST_TEST(nearest("sede", keys) == "seed");
  BOOST_TEST(nearest("sample", keys) == "samples");
  BOOST_TEST(nearest("learning-rate", keys) == "learning_rate");
  BOOST_TEST(nearest("learning", keys) == "learning_rate");
  BOOST_TEST(nearest("seed", keys) == "seed");
}

BOOST_AUTO_TEST_CASE(nearest_keeps_silent_when_nothing_is_near) {
  const std::vector<std::string> keys = {"density", "seed"};
  BOOST_TEST(nearest("momentum", keys).empty());
  BOOST_TEST(nearest("xyz", keys).empty());
  BOOST_TEST(nearest("density", {}).empty());
  BOOST_TEST(nearest("", keys).empty());
}

BOOST_AUTO_TEST_CASE(of_two_equally_near_the_first_is_named) {
  BOOST_TEST(nearest("beat", {"boat", "beam"}) == "boat");
  BOOST_TEST(nearest("beat", {"beam", "boat"}) == "beam");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace rumor
