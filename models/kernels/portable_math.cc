#include "models/kernels/portable_math.h"

#include <bit>
#include <cstdint>
#include <limits>

namespace rumor::models {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
// ln 2 in two parts: the high one has 21 trailing zero bits, so that k * ln2_high is exact for |k| < 2^20.
constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
constexpr double pi = 0x1.921fb54442d18p+1;

// 2^k for normal results.
double power_of_two(std::int64_t k) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

// 1 - s/(a(a+1)) * (1 - s/((a+2)(a+3)) * (...)), a from first to last: the series of cosine (first 1) and,
// but for its leading x, of sine (first 2), in s = x * x, summed from the far end.
double alternating(double square, int first, int last) {
  double sum = 1;
  for (int i = last; i >= first; i -= 2) sum = 1 - square / static_cast<double>((i + 1) * i) * sum;
  return sum;
}

}  // namespace

double portable_exp(double x) {
  if (x != x) return x;
  if (x < -700) return 0;
  if (x > 700) return infinity;
  const double scaled = x * 0x1.71547652b82fep+0;  // x / ln 2
  const auto k = static_cast<std::int64_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
  const double r = (x - static_cast<double>(k) * ln2_high) - static_cast<double>(k) * ln2_low;  // |r| <= 0.35
  double sum = 1;
  for (int i = 14; i >= 1; --i) sum = 1 + r / static_cast<double>(i) * sum;
  return sum * power_of_two(k);
}

double portable_log(double x) {
  if (x != x || x == infinity) return x;
  if (x < 0) return not_a_number;
  if (x < std::numeric_limits<double>::min()) return -infinity;
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto k = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000f'ffff'ffff'ffffu) | 0x3ff0'0000'0000'0000u);  // [1, 2)
  if (m > 1.4142135623730951) {
    m = m / 2;
    ++k;
  }
  const double s = (m - 1) / (m + 1), square = s * s;  // |s| <= 0.172
  double sum = 0;
  for (int i = 23; i >= 1; i -= 2) sum = sum * square + 1 / static_cast<double>(i);
  return static_cast<double>(k) * ln2_high + (2 * s * sum + static_cast<double>(k) * ln2_low);
}

double portable_cos_pi(double x) {
  if (x > 0.5) return -portable_cos_pi(1 - x);
  const double angle = pi * (x <= 0.25 ? x : 0.5 - x);  // at most pi / 4
  const double square = angle * angle;
  return x <= 0.25 ? alternating(square, 1, 19) : angle * alternating(square, 2, 20);
}

namespace {

// The rest of x after whole quarter turns, within pi / 4, and how many quarters there were.
struct Quarter {
  double rest;
  std::int64_t count;
};
Quarter quarter_of(double x) {
  // pi / 2 in two parts; the high one has 33 bits, so that its multiples below 2^20 are exact.
  constexpr double high = 0x1.921fb544p+0, low = 0x1.0b4611a626331p-34;
  const double turns = x / (pi / 2);
  const auto count = static_cast<std::int64_t>(turns < 0 ? turns - 0.5 : turns + 0.5);
  return {(x - static_cast<double>(count) * high) - static_cast<double>(count) * low, count};
}

double cosine_of_quarter(double rest, std::int64_t count) {
  const double square = rest * rest;
  const double value = count % 2 == 0 ? alternating(square, 1, 19) : rest * alternating(square, 2, 20);
  const std::int64_t place = count & 3;  // cosine, -sine, -cosine, sine
  return place == 1 || place == 2 ? -value : value;
}

}  // namespace

double portable_cos(double x) {
  const Quarter quarter = quarter_of(x);
  return cosine_of_quarter(quarter.rest, quarter.count);
}

double portable_sin(double x) {
  const Quarter quarter = quarter_of(x);
  return cosine_of_quarter(quarter.rest, quarter.count - 1);
}

double portable_power(double base, unsigned long long exponent) {
  double result = 1;
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result = result * base;
    base = base * base;
  }
  return result;
}

}  // namespace rumor::models
