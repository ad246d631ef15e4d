// The stages that --stage names, and how a wrong list is answered.
#include "tools/words/stage_list.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/contains.h"

namespace {

using rumor::test::contains;
using Stages = std::vector<std::uint32_t>;

Stages stages_of(const std::string& text, std::uint32_t stages) {
  const auto parsed = rumor::tools::parse_stages(text, stages);
  BOOST_REQUIRE_MESSAGE(parsed.ok(), (parsed ? "" : parsed.error().text));
  return *parsed;
}

std::string refusal_of(const std::string& text, std::uint32_t stages) {
  const auto parsed = rumor::tools::parse_stages(text, stages);
  BOOST_REQUIRE(!parsed.ok());
  BOOST_TEST((parsed.error().code == rumor::Errc::usage));
  return parsed.error().text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stage_list)

BOOST_AUTO_TEST_CASE(one_stage_or_several_with_or_without_their_number) {
  BOOST_TEST(stages_of("2", 4) == Stages{2}, boost::test_tools::per_element());
  BOOST_TEST(stages_of("2/4", 4) == Stages{2}, boost::test_tools::per_element());
  BOOST_TEST(stages_of("1,2", 4) == (Stages{1, 2}), boost::test_tools::per_element());
  BOOST_TEST(stages_of("4,2,1/4", 4) == (Stages{4, 2, 1}), boost::test_tools::per_element());
  BOOST_TEST(stages_of("all", 3) == (Stages{1, 2, 3}), boost::test_tools::per_element());
  BOOST_TEST(stages_of("1/1", 1) == Stages{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(no_stage_and_a_choice_are_none) {
  BOOST_TEST(stages_of("", 4).empty());
  BOOST_TEST(stages_of("auto", 4).empty());
}

BOOST_AUTO_TEST_CASE(what_is_no_list_is_told_the_form) {
  for (const char* text : {"0", "5", "5/4", "1,5/4", "1,", ",1", "1,,2", "1-3", "1, 2", "x", "2/", "2/4/4", "/4", "-1",
                           "1;2", "2/4,3", "auto,1", "99999999999"}) {
    const std::string refusal = refusal_of(text, 4);
    BOOST_TEST(contains(refusal, std::string("--stage ") + text + " wants"));
    BOOST_TEST(contains(refusal, "pipeline.stages = 4"));
  }
}

BOOST_AUTO_TEST_CASE(another_number_of_stages_is_told_that_of_the_run_file) {
  BOOST_TEST(contains(refusal_of("1,2/3", 4), "--stage 1,2/3: the run file has pipeline.stages = 4"));
  BOOST_TEST(contains(refusal_of("2/8", 4), "the run file has pipeline.stages = 4"));
}

BOOST_AUTO_TEST_SUITE_END()
