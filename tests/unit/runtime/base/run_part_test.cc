// How a refused peer learns in what its run differs.
#include "runtime/base/run_part.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "runtime/base/limits.h"

namespace rumor::test {

BOOST_AUTO_TEST_SUITE(run_part)

BOOST_AUTO_TEST_CASE(names_at_most_three) {
  const std::vector<RunPart> ours = {{"a = 1", 1}, {"b = 2", 2}, {"c = 3", 3}, {"d = 4", 4}, {"e = 5", 5}};
  const auto against = [&](std::vector<std::uint32_t> theirs) { return unlike_parts(ours, theirs); };
  BOOST_TEST(against({1, 3, 4, 5, 9}) == "it does not have what is here: b = 2");
  BOOST_TEST(against({5}) == "it does not have what is here: a = 1, b = 2, c = 3 and 1 more");
  BOOST_TEST(against({1, 2, 3, 4, 5, 6, 7}) == "it has 2 tensors or keys more");
  BOOST_TEST(against({1, 2, 3, 4, 5}) == "");
  BOOST_TEST(against({}) == "");  // a peer that does not say
}

BOOST_AUTO_TEST_CASE(another_order_is_told) {
  const std::vector<RunPart> ours = {{"the start", 1}, {"tensor a", 2}, {"tensor b", 3}, {"tensor c", 4}};
  const auto against = [&](std::vector<std::uint32_t> theirs) { return unlike_parts(ours, theirs); };
  BOOST_TEST(against({1, 3, 2, 4}) == "it has another order, in which this comes elsewhere: tensor a");
  BOOST_TEST(against({9, 2, 4, 3}) ==
             "it does not have what is here: the start; it has another order, in which this comes elsewhere: tensor b");
  BOOST_TEST(against({9, 2, 8, 3, 4}) == "it does not have what is here: the start");
  BOOST_TEST(against({4, 4, 4, 4}) == "it does not have what is here: the start, tensor a, tensor b");  // nonsense
  BOOST_TEST(against({4, 4, 1, 2, 3}) == "it has another order, in which this comes elsewhere: the start");
  BOOST_TEST(unlike_parts(std::vector<RunPart>{{"a", 1}, {"b", 1}}, std::vector<std::uint32_t>{1}) ==
             "it has another order, in which this comes elsewhere: b");  // two of ours with one hash
}

BOOST_AUTO_TEST_CASE(parts_that_a_rejection_has_no_room_for_count_as_equal) {
  std::vector<RunPart> ours(limits::run_parts_max + 10);
  std::vector<std::uint32_t> theirs;
  for (std::uint32_t i = 0; i < ours.size(); ++i) {
    ours[i] = {"part", i};
    if (i < limits::run_parts_max) theirs.push_back(i);
  }
  BOOST_TEST(unlike_parts(ours, theirs) == "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::test
