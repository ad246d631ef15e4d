// The results of `rumor doctor`: a line each, the fix below a problem, and a summary.
#include "tools/words/findings.h"

#include <boost/test/unit_test.hpp>

using rumor::tools::Findings;

BOOST_AUTO_TEST_SUITE(findings)

BOOST_AUTO_TEST_CASE(a_sound_machine_is_well) {
  Findings found;
  found.good("clock", "in step");
  BOOST_TEST(!found.broken());
  BOOST_TEST(found.text() == "ok    clock        in step\n\nall is well\n");
}

BOOST_AUTO_TEST_CASE(a_warning_breaks_nothing_and_names_its_fix) {
  Findings found;
  found.warn("disk", "slow", "use another one");
  BOOST_TEST(!found.broken());
  BOOST_TEST(found.text() == "warn  disk         slow\n                   fix: use another one\n\n"
                             "all is well, 1 worth a look\n");
}

BOOST_AUTO_TEST_CASE(what_is_broken_is_counted_apart) {
  Findings found;
  found.warn("disk", "slow", "use another one");
  found.bad("run file", "unknown key", "remove it");
  found.bad("data", "missing", "install it");
  BOOST_TEST(found.broken());
  BOOST_TEST(found.text().ends_with("BAD   data         missing\n                   fix: install it\n\n"
                                    "2 broken, 1 worth a look\n"));
}

BOOST_AUTO_TEST_SUITE_END()
