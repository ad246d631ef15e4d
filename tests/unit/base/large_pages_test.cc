// Large pages are a wish: what the memory holds is the same with and without.
#include "runtime/base/large_pages.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace rumor;

BOOST_AUTO_TEST_SUITE(large_pages)

BOOST_AUTO_TEST_CASE(vectors_hold_what_was_asked_for) {
  std::vector<int> numbers{1, 2, 3};
  for (std::size_t count : {std::size_t{0}, std::size_t{5}, std::size_t{3} << 20, std::size_t{7}}) {
    assign_in_large_pages(numbers, count, 4);
    BOOST_TEST(numbers.size() == count);
    BOOST_TEST((std::count(numbers.begin(), numbers.end(), 4) == static_cast<std::ptrdiff_t>(count)));
  }
}

BOOST_AUTO_TEST_CASE(a_wish_leaves_what_is_there) {
  std::vector<unsigned char> bytes(std::size_t{5} << 20, 9);
  wish_large_pages(bytes.data() + 1, bytes.size() - 1);
  wish_large_pages(bytes.data(), 100);
  wish_large_pages(nullptr, 0);
  BOOST_TEST((std::count(bytes.begin(), bytes.end(), 9) == static_cast<std::ptrdiff_t>(bytes.size())));
}

BOOST_AUTO_TEST_SUITE_END()
