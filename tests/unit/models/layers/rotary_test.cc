// Rotary positions: angles, the way back, and scaling.
#include "models/layers/rotary.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/unit/models/families/gpt_support.h"

namespace rumor::models {

BOOST_AUTO_TEST_SUITE(rotary)

// 3 rows of 2 heads of 6 floats, 14 floats apart; the last two of a row are of no head.
BOOST_AUTO_TEST_CASE(pairs_turn_by_their_place) {
  Prng prng(1);
  const std::vector<float> before = test::draw(prng, 3 * 14);
  std::vector<float> x = before;
  const Rotary turns(2, 6, 10'000, {});
  turns.forward(nullptr, 3, 2, x.data(), 14);
  for (std::size_t row = 0; row < 3; ++row) {
    const double place = row == 1 ? 1 : 0;  // a context is two tokens
    for (std::size_t at = 0; at < 14; ++at) {
      const std::size_t i = row * 14 + at, pair = at % 6 % 3;
      if (at >= 12) {
        BOOST_TEST(x[i] == before[i]);
        continue;
      }
      const double angle = place * std::pow(10'000, -2.0 * static_cast<double>(pair) / 6);
      const std::size_t first = row * 14 + at / 6 * 6 + pair;
      const auto a = static_cast<double>(before[first]), b = static_cast<double>(before[first + 3]);
      const double expected = at % 6 < 3 ? a * std::cos(angle) - b * std::sin(angle)
                                         : b * std::cos(angle) + a * std::sin(angle);
      BOOST_TEST(std::abs(static_cast<double>(x[i]) - expected) < 1e-6);
    }
  }
  turns.backward(nullptr, 3, 2, x.data(), 14);
  BOOST_TEST(test::worst(x, before) < 1e-6);
}

BOOST_AUTO_TEST_CASE(a_linear_scale_of_two_makes_two_places_of_one) {
  Prng prng(2);
  const std::vector<float> before = test::draw(prng, 8);
  const Rotary plain(8, 8, 500, {}), slow(8, 8, 500, {RotaryScaling::Kind::linear, 2, 1, 4, 1});
  for (long place = 0; place < 4; ++place) {
    std::vector<float> x = before, y = before;
    plain.forward(nullptr, 1, 1, x.data(), 8, place);
    slow.forward(nullptr, 1, 1, y.data(), 8, 2 * place);
    BOOST_TEST((x == y), "place " << place);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
