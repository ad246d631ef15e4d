#include "models/kernels/activations.h"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>

using namespace rumor;
using namespace rumor::models;

BOOST_AUTO_TEST_SUITE(activations)

BOOST_AUTO_TEST_CASE(arrays_follow_each_other_a_few_lines_apart) {
  LargeVector<float> memory;
  std::array<float*, 4> at{};
  const std::array<std::size_t, 4> floats = {1024, 1, 0, 4096};
  std::vector<ActivationArray> arrays;
  for (std::size_t i = 0; i < at.size(); ++i) arrays.push_back({&at[i], floats[i]});
  place_activations(memory, arrays);
  const auto place = [&](std::size_t i) { return reinterpret_cast<std::uintptr_t>(at[i]); };
  for (std::size_t i = 0; i < at.size(); ++i) {
    BOOST_TEST(place(i) % 64 == 0u);
    BOOST_TEST(at[i] >= memory.data());
    BOOST_TEST(at[i] + floats[i] <= (i + 1 < at.size() ? at[i + 1] : memory.data() + memory.size()));
  }
  BOOST_TEST((place(1) - place(0)) % 4096 != 0u);  // though 1,024 floats are a page
}

BOOST_AUTO_TEST_CASE(memory_grows_and_stays) {
  LargeVector<float> memory;
  float* at = nullptr;
  for (const std::size_t floats : {100u, 5000u, 30u}) {
    place_activations(memory, std::array{ActivationArray{&at, floats}});
    BOOST_TEST(at == memory.data());
    BOOST_TEST(memory.size() >= floats);
  }
  BOOST_TEST(memory.size() >= 5000u);
}

BOOST_AUTO_TEST_SUITE_END()
