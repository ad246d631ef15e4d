#include "runtime/report/table.h"

#include <boost/test/unit_test.hpp>

using namespace rumor;

BOOST_AUTO_TEST_SUITE(table)

BOOST_AUTO_TEST_CASE(columns_are_as_wide_as_their_widest_cell) {
  const sim::Table table{{"method", "of", "loss"}, {{"a", "b", "0.25"}, {"longer one", "c", "10.5"}}, 2};
  BOOST_TEST(sim::text_table(table) ==
             "  method      of  loss\n"
             "  a           b   0.25\n"
             "  longer one  c   10.5\n");
}

BOOST_AUTO_TEST_CASE(cells_are_escaped_and_numbers_stand_right) {
  const sim::Table table{{"a<b", "n"}, {{"x&y", "1"}}, 1};
  BOOST_TEST(sim::html_table(table) ==
             "<div class=\"wide\"><table><tr><th>a&lt;b</th><th class=\"n\">n</th></tr>"
             "<tr><th>x&amp;y</th><td class=\"n\">1</td></tr></table></div>");
}

BOOST_AUTO_TEST_SUITE_END()
