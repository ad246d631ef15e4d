// Requests to a tier, how sure an exit is, views that become one, and where samples leave.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/unit/contains.h"
#include "tools/serve/exit_outcome.h"
#include "tools/serve/views.h"

namespace rumor::tools {
namespace {

using compress::BorderNumbers;

constexpr const char* json_type = "application/json";

std::string refused_views(const std::string& type, const std::string& body,
                          BorderNumbers numbers = BorderNumbers::f32) {
  const auto views = read_views(type, body, numbers, 3);
  return views ? std::string() : views.error().text;
}

std::string coded(BorderNumbers numbers, const std::vector<float>& values) {
  Bytes bytes;
  compress::encode_border(numbers, 3, values, bytes);
  return {bytes.begin(), bytes.end()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(serve)

BOOST_AUTO_TEST_CASE(a_request_holds_one_view_or_several) {
  const auto one = read_views(json_type, "[1, -2.5, 3e1]", BorderNumbers::int8, 3).value();
  BOOST_TEST(one.count == 1u);
  BOOST_TEST((one.values == std::vector<float>{1, -2.5f, 30}));
  const auto two = read_views("application/json; charset=utf-8", "[[1,2,3],[4,5,6]]", BorderNumbers::f32, 3).value();
  BOOST_TEST(two.count == 2u);
  BOOST_TEST((two.values == std::vector<float>{1, 2, 3, 4, 5, 6}));
  const std::vector<float> values = {0.5f, -1, 2, 8, 16, -4};
  for (const BorderNumbers numbers : {BorderNumbers::f32, BorderNumbers::bf16}) {
    const auto raw = read_views("", coded(numbers, values), numbers, 3).value();
    BOOST_TEST(raw.count == 2u);
    BOOST_TEST((raw.values == values));
  }
  // The rows of sensors are coded one by one, so their bodies may follow one another.
  const std::string first = coded(BorderNumbers::int8, {127, 1, 2}), second = coded(BorderNumbers::int8, {0, -127, 3});
  const auto joined = read_views("", first + second, BorderNumbers::int8, 3).value();
  BOOST_TEST((joined.values == std::vector<float>{127, 1, 2, 0, -127, 3}));
}

BOOST_AUTO_TEST_CASE(a_request_that_cannot_be_read_is_refused_with_the_cause) {
  using test::contains;
  BOOST_TEST(contains(refused_views(json_type, ""), "no JSON list; send 3 numbers"));
  BOOST_TEST(contains(refused_views(json_type, "{}"), "no JSON list"));
  BOOST_TEST(contains(refused_views(json_type, "[]"), "no JSON list"));
  BOOST_TEST(contains(refused_views(json_type, "[1, 2"), "no JSON list"));
  BOOST_TEST(contains(refused_views(json_type, "[1, 2]"), "a view of 2 numbers; this tier takes views of 3"));
  BOOST_TEST(contains(refused_views(json_type, "[1, 2, \"3\"]"), "something that is no number"));
  BOOST_TEST(contains(refused_views(json_type, "[1, 2, 1e300]"), "that no f32 can hold"));
  BOOST_TEST(contains(refused_views(json_type, "[[1, 2, 3], 4]"), "both numbers and lists"));
  BOOST_TEST(contains(refused_views(json_type, std::string(50'000, '[')), "no JSON list"));
  BOOST_TEST(contains(refused_views("", ""), "a body of 0 bytes; a view has 12 bytes"));
  BOOST_TEST(contains(refused_views("", "1234567"), "a body of 7 bytes"));
  BOOST_TEST(contains(refused_views("", std::string(7, 0), BorderNumbers::bf16), "a view has 6 bytes"));
  BOOST_TEST(contains(refused_views("", std::string(12, '\xff')), "not finite"));
  BOOST_TEST(contains(refused_views("", std::string(12 * (views_max + 1), 0)), "more than 64 views"));
  std::string many = "[[1,2,3]";
  for (std::uint32_t i = 0; i < views_max; ++i) many += ",[1,2,3]";
  BOOST_TEST(contains(refused_views(json_type, many + "]"), "more than 64 views"));
}

BOOST_AUTO_TEST_CASE(entropy_is_between_a_certain_class_and_all_alike) {
  BOOST_TEST(normalised_entropy(std::vector<float>{0, 1, 0, 0}) == 0);
  BOOST_TEST(std::abs(normalised_entropy(std::vector<float>{0.25f, 0.25f, 0.25f, 0.25f}) - 1) < 1e-7);
  BOOST_TEST(std::abs(normalised_entropy(std::vector<float>{0.5f, 0.5f, 0, 0}) - 0.5) < 1e-7);
  BOOST_TEST(best_class(std::vector<float>{0.1f, 0.45f, 0.45f}) == 1u);
}

BOOST_AUTO_TEST_CASE(views_become_one_value_by_value) {
  const Views views{{1, -2, 3, 4, 0, -3}, 2};
  BOOST_TEST((aggregate(Sensors::max, views) == std::vector<float>{4, 0, 3}));
  BOOST_TEST((aggregate(Sensors::mean, views) == std::vector<float>{2.5f, -1, 0}));
  BOOST_TEST((aggregate(Sensors::one, {{1, 2}, 1}) == std::vector<float>{1, 2}));
}

BOOST_AUTO_TEST_CASE(samples_leave_at_the_first_exit_that_is_sure) {
  ExitFindings findings;
  findings.tiers = {{{0.1, 0.4, 0.9, 0.9}, {1, 0, 0, 0}, 100}, {{0.9, 0.3, 0.2, 0.8}, {1, 1, 1, 0}, 10}, {{}, {}, 0}};
  findings.tiers[2] = {{0, 0, 0, 0}, {1, 1, 1, 1}, 0};
  const ExitOutcome half = outcome_of(findings, 0.4);
  BOOST_TEST(half.tiers[0].leaves == 0.25);
  BOOST_TEST(half.tiers[1].leaves == 0.5);
  BOOST_TEST(half.tiers[2].leaves == 0.25);
  BOOST_TEST(half.tiers[0].alone == 0.25);
  BOOST_TEST(half.tiers[1].alone == 0.75);
  BOOST_TEST(half.tiers[1].right_of_these == 1);
  BOOST_TEST(half.right == 1);
  BOOST_TEST(half.bytes_per_sample == (3 * 100 + 10) / 4.0);
  const ExitOutcome never = outcome_of(findings, 0), always = outcome_of(findings, 1);
  BOOST_TEST(never.tiers[2].leaves == 1);
  BOOST_TEST(never.bytes_per_sample == 110);
  BOOST_TEST(always.tiers[0].leaves == 1);
  BOOST_TEST(always.right == 0.25);
  BOOST_TEST(always.bytes_per_sample == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::tools
