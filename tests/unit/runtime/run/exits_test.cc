// pipeline.exits of a run file: what is read and refused, and the run's identity.
#include <boost/test/unit_test.hpp>

#include "runtime/run/run_config.h"
#include "runtime/run/run_identity.h"
#include "tests/unit/contains.h"
#include "tests/unit/runtime/support.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(exits_of_a_run)

// So a run without exits keeps the id that it had.
BOOST_AUTO_TEST_CASE(exits_count_where_there_are_some) {
  const auto refused = [](const std::string& text) {
    const auto parsed = parse_run_config(text, "run.toml");
    return parsed.ok() ? std::string() : parsed.error().text;
  };
  const ParamLayout layout = test::small_layout();
  const auto with = [](const std::string& exits) {
    return parse_run_config("[pipeline]\nstages = 3\n" + exits, "run.toml").value();
  };
  BOOST_TEST((run_id(with("exits = []\n"), layout) == run_id(with(""), layout)));
  BOOST_TEST((run_id(with("exits = [0.3, 0.3]\n"), layout) != run_id(with(""), layout)));
  BOOST_TEST((run_id(with("exits = [0.3, 0.3]\n"), layout) != run_id(with("exits = [0.3, 1]\n"), layout)));
  BOOST_TEST(test::contains(refused("[pipeline]\nstages = 3\nexits = [0.3]\n"), "pipeline.exits has 1 numbers, and"));
  BOOST_TEST(test::contains(refused("[pipeline]\nexits = [0.3]\n"), "pipeline.stages = 1; give one for each"));
  BOOST_TEST(test::contains(refused("[pipeline]\nstages = 2\nexits = [0]\n"), "numbers above 0 and at most 100"));
  BOOST_TEST(test::contains(refused("[pipeline]\nstages = 2\nexits = 0.3\n"), "wants a list of numbers"));
  BOOST_TEST(test::contains(refused("[pipeline]\nstages = 2\nexits = [0.3]\n[model]\nfamily = \"gpt\"\n"),
                      "pipeline.exits are for models that classify"));
}

BOOST_AUTO_TEST_SUITE_END()
