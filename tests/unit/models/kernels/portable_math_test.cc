// Against the C library to 1e-14, and a few exact results.
#include "models/kernels/portable_math.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

namespace rumor::models {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double relative_error(double got, double expected) { return std::abs(got - expected) / std::abs(expected); }

}  // namespace

BOOST_AUTO_TEST_SUITE(portable_math)

BOOST_AUTO_TEST_CASE(exp_is_right_over_its_range) {
  double worst = 0;
  for (double x = -699.9; x < 700; x += 0.0731)
    worst = std::max(worst, relative_error(portable_exp(x), std::exp(x)));
  for (double x = -1; x < 1; x += 0.00037)
    worst = std::max(worst, relative_error(portable_exp(x), std::exp(x)));
  BOOST_TEST(worst < 1e-14);
  BOOST_TEST(portable_exp(0) == 1.0);
  BOOST_TEST(portable_exp(-701) == 0.0);
  BOOST_TEST(portable_exp(-infinity) == 0.0);
  BOOST_TEST(portable_exp(infinity) == infinity);
  BOOST_TEST(std::isnan(portable_exp(std::nan(""))));
}

BOOST_AUTO_TEST_CASE(log_is_right_over_its_range) {
  double worst = 0;
  for (double x = 1e-300; x < 1e300; x *= 1.37)
    worst = std::max(worst, relative_error(portable_log(x), std::log(x)));
  for (double x = 1.001; x < 20; x += 0.0013)
    worst = std::max(worst, relative_error(portable_log(x), std::log(x)));
  BOOST_TEST(worst < 1e-14);
  BOOST_TEST(portable_log(1) == 0.0);
  BOOST_TEST(portable_log(0) == -infinity);
  BOOST_TEST(portable_log(infinity) == infinity);
  BOOST_TEST(std::isnan(portable_log(-1)));
  BOOST_TEST(std::isnan(portable_log(std::nan(""))));
}

BOOST_AUTO_TEST_CASE(cosine_is_right_over_its_range) {
  for (int i = 0; i <= 1000; ++i) {
    const double expected = std::cos(3.14159265358979323846 * i / 1000);
    BOOST_TEST(std::abs(portable_cos_pi(i / 1000.0) - expected) < 1e-15);
  }
  BOOST_TEST(portable_cos_pi(0) == 1.0);
  BOOST_TEST(portable_cos_pi(0.5) == 0.0);
  BOOST_TEST(portable_cos_pi(1) == -1.0);
}

BOOST_AUTO_TEST_CASE(power_multiplies) {
  BOOST_TEST(portable_power(0.9, 0) == 1.0);
  BOOST_TEST(portable_power(2, 10) == 1024.0);
  BOOST_TEST(portable_power(0.5, 3) == 0.125);
  BOOST_TEST(relative_error(portable_power(0.999, 1000), std::pow(0.999, 1000)) < 1e-13);
  BOOST_TEST(portable_power(0.9, ~0ull) == 0.0);
}

BOOST_AUTO_TEST_CASE(cosine_and_sine_of_any_angle) {
  double worst = 0;
  for (double x = -131'072; x < 131'072; x += 1.7183)
    worst = std::max({worst, std::abs(portable_cos(x) - std::cos(x)), std::abs(portable_sin(x) - std::sin(x))});
  BOOST_TEST(worst < 1e-15);
  BOOST_TEST(portable_cos(0) == 1.0);
  BOOST_TEST(portable_sin(0) == 0.0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
