// data.resolution of a run file: what is read, shown and refused, and which size counts when.
#include "runtime/run/resolution.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>

#include "runtime/run/run_config.h"
#include "runtime/run/run_identity.h"
#include "tests/unit/contains.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;
using rumor::test::contains;

BOOST_AUTO_TEST_SUITE(resolution)

namespace {

RunConfig config_with(const std::string& value) {
  RunConfig config;
  const auto set = override_run_config(config, "data.resolution=" + value);
  BOOST_REQUIRE_MESSAGE(set.ok(), (set.ok() ? "" : set.error().text));
  return config;
}

std::string refusal(const std::string& value, const std::string& more = "") {
  const auto parsed = parse_run_config("[data]\nresolution = " + value + "\n" + more, "run.toml");
  return parsed.ok() ? "" : parsed.error().text;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_file_and_an_override_read_the_same) {
  const auto file = parse_run_config("[data]\nresolution = [[0, 8], [0.3, 16], [0.6, 28]]\n", "run.toml").value();
  const Resolution expected{{{0, 8}, {0.3, 16}, {0.6, 28}}};
  BOOST_TEST((file.resolution == expected));
  BOOST_TEST((config_with("[[0, 8], [0.3, 16], [0.6, 28]]").resolution == expected));
  BOOST_TEST((config_with("[[0.0, 28]]").resolution == Resolution{{{0, 28}}}));
  BOOST_TEST(!config_with("[]").resolution.is_on());
  BOOST_TEST((expected.sizes() == std::vector<std::uint32_t>{8, 16, 28}));
}

BOOST_AUTO_TEST_CASE(a_size_counts_from_its_share_on) {
  const Resolution sizes{{{0, 8}, {0.3, 16}, {0.6, 28}}};
  BOOST_TEST(sizes.size_at(0) == 8u);
  BOOST_TEST(sizes.size_at(0.29) == 8u);
  BOOST_TEST(sizes.size_at(0.3) == 16u);
  BOOST_TEST(sizes.size_at(0.6) == 28u);
  BOOST_TEST(sizes.size_at(1) == 28u);
  BOOST_TEST(Resolution().size_at(0.5) == 0u);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_says_what_would) {
  const char* wanted = "data.resolution wants a list of [share of the run, pixels a side], such as";
  for (const char* value : {"8", "\"8\"", "[8, 28]", "[[0, 8, 1]]", "[[0]]", "[[\"0\", 8]]", "[[0, 8], 28]"})
    BOOST_TEST(contains(refusal(value), wanted), value);
  BOOST_TEST(contains(refusal("[[0, 0]]"), "in its pairs wants a whole number from 1"));
  BOOST_TEST(contains(refusal("[[0, 8.5]]"), "in its pairs wants a whole number from 1"));
  BOOST_TEST(contains(refusal("[[0.1, 8], [0.5, 28]]"), "wants its first share to be 0"));
  BOOST_TEST(contains(refusal("[[0, 8], [0.5, 16], [0.5, 28]]"), "wants shares that rise and stay below 1, and 0.5"));
  BOOST_TEST(contains(refusal("[[0, 8], [1, 28]]"), "wants shares that rise and stay below 1"));
  BOOST_TEST(contains(refusal("[[0, 8], [nan, 28]]"), "wants shares that rise and stay below 1"));
  BOOST_TEST(contains(refusal("[[0, 28], [0.5, 8]]"), "wants pixels that rise, and 8 follows 28"));
  BOOST_TEST(contains(refusal("[[0, 8], [0.5, 28]]", "[pipeline]\nstages = 2\n"), "pipeline.stages = 2"));
  BOOST_TEST(contains(refusal("[[0, 8], [0.5, 28]]", "[exchange]\nmode = \"sync\"\n"), "exchange.mode = \"sync\""));
  for (const char* mode : {"average", "codistill"})
    BOOST_TEST(refusal("[[0, 8], [0.5, 28]]", std::string("[exchange]\nmode = \"") + mode + "\"\n") == "", mode);
}

BOOST_AUTO_TEST_CASE(it_is_part_of_the_run_where_there_is_one) {
  const ParamLayout layout = test::small_layout();
  const RunConfig none, empty = config_with("[]"), two = config_with("[[0, 8], [0.5, 28]]");
  BOOST_TEST((run_id(none, layout) == run_id(empty, layout)));
  BOOST_TEST((run_id(none, layout) != run_id(two, layout)));
  BOOST_TEST((run_id(two, layout) == run_id(config_with("[[0.0, 8], [5e-1, 28]]"), layout)));
  BOOST_TEST((run_id(two, layout) != run_id(config_with("[[0, 8], [0.51, 28]]"), layout)));
  const std::vector<RunPart> parts = run_parts(two, layout);
  BOOST_TEST(std::count_if(parts.begin(), parts.end(), [](const RunPart& part) {
               return part.text == "data.resolution = [[0, 8], [0.5, 28]]";
             }) == 1);
}

BOOST_AUTO_TEST_SUITE_END()
