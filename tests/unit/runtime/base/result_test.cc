#include "runtime/base/result.h"

#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <memory>

namespace rumor {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return Error{Errc::usage, "an even number is needed"};
  return number / 2;
}

Result<void> require_even(int number) {
  const auto result = half(number);
  if (!result) return result.error();
  return {};
}

// Runs `action` in a process of its own, quietly; returns the signal that ended it, 0 for a normal end.
template <class Action>
int signal_of(Action action) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    ::close(STDERR_FILENO);
    action();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

BOOST_AUTO_TEST_SUITE(result)

BOOST_AUTO_TEST_CASE(a_value_or_the_reason_why_there_is_none) {
  const auto good = half(4);
  BOOST_TEST_REQUIRE(good.ok());
  BOOST_TEST(static_cast<bool>(good));
  BOOST_TEST(good.value() == 2);
  BOOST_TEST(*good == 2);
  const auto bad = half(3);
  BOOST_TEST_REQUIRE(!bad.ok());
  BOOST_TEST(!static_cast<bool>(bad));
  BOOST_TEST((bad.error().code == Errc::usage));
  BOOST_TEST(bad.error().text == "an even number is needed");
}

BOOST_AUTO_TEST_CASE(void_is_success_or_the_reason) {
  BOOST_TEST(require_even(4).ok());
  const auto bad = require_even(3);
  BOOST_TEST_REQUIRE(!bad.ok());
  BOOST_TEST(bad.error().text == "an even number is needed");
}

BOOST_AUTO_TEST_CASE(values_move_out_and_change_in_place) {
  Result<std::unique_ptr<int>> owner = std::make_unique<int>(7);
  **owner = 8;
  const std::unique_ptr<int> taken = std::move(owner).value();
  BOOST_TEST(*taken == 8);
  Result<std::string> text = std::string("a");
  text->push_back('b');
  BOOST_TEST(*text == "ab");
}

BOOST_AUTO_TEST_CASE(a_result_of_errors_tells_which_is_which) {
  const Result<std::string> value = std::string("looks like an error");
  BOOST_TEST(value.ok());
  const Result<std::string> error = Error{Errc::io, "an error"};
  BOOST_TEST(!error.ok());
}

// The numbers reach logs and exit codes; a change would break scripts of users.
BOOST_AUTO_TEST_CASE(error_numbers_are_fixed) {
  static_assert(static_cast<int>(Errc::usage) == 1 && static_cast<int>(Errc::not_found) == 2);
  static_assert(static_cast<int>(Errc::io) == 3 && static_cast<int>(Errc::corrupt) == 4);
  static_assert(static_cast<int>(Errc::mismatch) == 5 && static_cast<int>(Errc::limit) == 6);
  static_assert(static_cast<int>(Errc::diverged) == 7);
  BOOST_TEST((Error{}.code == Errc::io));
}

BOOST_AUTO_TEST_CASE(asking_for_what_is_not_there_stops_the_program) {
  BOOST_TEST(signal_of([] { (void)half(4).value(); }) == 0);
  BOOST_TEST(signal_of([] { (void)half(3).value(); }) == SIGABRT);
  BOOST_TEST(signal_of([] { (void)half(4).error(); }) == SIGABRT);
  BOOST_TEST(signal_of([] { (void)require_even(4).error(); }) == SIGABRT);
  BOOST_TEST(signal_of([] { RUMOR_CHECK(1 + 1 == 2); }) == 0);
  BOOST_TEST(signal_of([] { RUMOR_CHECK(1 + 1 == 3); }) == SIGABRT);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace rumor
