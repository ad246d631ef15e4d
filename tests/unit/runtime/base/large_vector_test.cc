// A LargeVector is a vector whose memory begins with a line of the cache.
#include "runtime/base/large_vector.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <set>

using namespace rumor;

BOOST_AUTO_TEST_SUITE(large_vector)

BOOST_AUTO_TEST_CASE(memory_begins_with_a_line_and_holds_what_was_asked_for) {
  for (std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{3000}, std::size_t{3} << 20}) {
    LargeVector<int> numbers(count, 4);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(numbers.data()) % 64 == 0u);
    numbers.push_back(4);  // grows, moves
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(numbers.data()) % 64 == 0u);
    BOOST_TEST((std::count(numbers.begin(), numbers.end(), 4) == static_cast<std::ptrdiff_t>(count) + 1));
  }
}

BOOST_AUTO_TEST_CASE(neighbours_begin_at_different_places_of_a_page) {
  std::vector<LargeVector<float>> arrays(8);
  std::set<std::uintptr_t> places;
  for (LargeVector<float>& array : arrays) {
    array.resize(std::size_t{1} << 20);
    places.insert(reinterpret_cast<std::uintptr_t>(array.data()) % 4096);
  }
  BOOST_TEST(places.size() > arrays.size() / 2);
}

BOOST_AUTO_TEST_CASE(room_grows_and_never_shrinks) {
  LargeVector<float> memory;
  float* const first = room_in(memory, 1000);
  BOOST_TEST(std::all_of(first, first + 1000, [](float x) { return x == 0; }));
  BOOST_TEST(room_in(memory, 10) == first);
  BOOST_TEST(memory.size() == 1000u);
  BOOST_TEST(*std::max_element(room_in(memory, 5000), memory.data() + 5000) == 0.0f);
}

BOOST_AUTO_TEST_CASE(more_than_there_can_be_is_refused) {
  LargeAllocator<double> allocator;
  BOOST_CHECK_THROW((void)allocator.allocate(std::numeric_limits<std::size_t>::max() / 4), std::bad_array_new_length);
}

BOOST_AUTO_TEST_SUITE_END()
