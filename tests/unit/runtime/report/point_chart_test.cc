#include "runtime/report/point_chart.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <regex>
#include <set>

#include "tests/unit/contains.h"

using namespace rumor;

namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

const sim::ChartText log_axes{"Title <1>", "bytes", "loss", false, true};

struct Label {
  double x, y;
  std::string text;
};

std::vector<Label> labels_of(const std::string& svg) {
  static const std::regex label("<text class=\"mark\" x=\"([0-9.]+)\" y=\"([0-9.]+)\"[^>]*>([^<]*)<");
  std::vector<Label> out;
  for (std::sregex_iterator i(svg.begin(), svg.end(), label), end; i != end; ++i)
    out.push_back({std::stod((*i)[1]), std::stod((*i)[2]), (*i)[3]});
  return out;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(point_chart)

BOOST_AUTO_TEST_CASE(every_mark_is_drawn_with_its_hint_and_the_best_are_filled) {
  const std::string svg = sim::point_chart(
      log_axes,
      {{"a&b", {{0.01, 0.5, "1 %", "a <hint>", true}, {0.1, 0.4, "10 %", "", true}}, {{0.01, 0.5}, {0.1, 0.4}}},
       {"c", {{1, 0.6, "all", "", false}}, {}}},
      "the best");
  BOOST_TEST(test::contains(svg, "Title &lt;1&gt;"));
  BOOST_TEST(test::contains(svg, "a&amp;b"));
  BOOST_TEST(test::contains(svg, "<title>a &lt;hint&gt;</title>"));
  BOOST_TEST(test::contains(svg, "the best"));
  BOOST_TEST(occurrences(svg, "fill:var(--page)") == 1u);      // the one that is not best
  BOOST_TEST(occurrences(svg, "fill:var(--c0)") == 2u + 1u);   // and in the legend
  BOOST_TEST(occurrences(svg, "<polyline fill=\"none\" stroke-width") == 1u);
  BOOST_TEST(occurrences(svg, "<polyline fill=\"none\" class=\"best\"") == 1u);
  BOOST_TEST(labels_of(svg).size() == 3u);
}

BOOST_AUTO_TEST_CASE(each_group_has_a_colour_and_a_shape_of_its_own) {
  std::vector<sim::MarkGroup> groups;
  for (int g = 0; g < 20; ++g) groups.push_back({"g", {}, {}});
  const std::string svg = sim::point_chart(log_axes, groups, "best");
  static const std::regex mark("<path d=\"([^\"]*)\" style=\"stroke:([^;]*);");
  std::set<std::string> seen;
  for (std::sregex_iterator i(svg.begin(), svg.end(), mark), end; i != end; ++i)
    seen.insert((*i)[1].str() + (*i)[2].str());
  BOOST_TEST(seen.size() == groups.size());
}

BOOST_AUTO_TEST_CASE(one_mark_and_none_are_charts_without_nonsense) {
  for (const sim::MarkGroup& group : {sim::MarkGroup{"one", {{0.01, 0.5, "1 %", "", true}}, {{0.01, 0.5}}},
                                      sim::MarkGroup{"none", {}, {}},
                                      sim::MarkGroup{"diverged", {{0.01, std::nan(""), "x", "", false}}, {}}}) {
    const std::string svg = sim::point_chart(log_axes, {group}, "best");
    BOOST_TEST(test::contains(svg, group.name));
    BOOST_TEST(!test::contains(svg, "nan"));
    BOOST_TEST(!test::contains(svg, "inf"));
  }
}

BOOST_AUTO_TEST_CASE(what_costs_nothing_is_a_level_line_on_a_logarithmic_axis) {
  const std::vector<sim::MarkGroup> groups = {{"alone", {{0, 0.45, "alone: sends nothing", "free", false}}, {}},
                                              {"other", {{0.1, 0.5, "1 %", "", true}, {1, 0.4, "10 %", "", true}}, {}}};
  const std::string svg = sim::point_chart(log_axes, groups, "best");
  BOOST_TEST(occurrences(svg, "stroke-dasharray=\"2 3\"") == 1u);
  BOOST_TEST(test::contains(svg, "<title>free</title></line>"));
  BOOST_TEST(test::contains(svg, "alone: sends nothing</text>"));
  BOOST_TEST(!test::contains(svg, "nan"));
  BOOST_TEST(!test::contains(svg, "inf"));
  sim::ChartText linear = log_axes;
  linear.x_log = false;
  BOOST_TEST(!test::contains(sim::point_chart(linear, groups, "best"), "stroke-dasharray=\"2 3\""));  // it has a place
}

BOOST_AUTO_TEST_CASE(labels_meet_neither_each_other_nor_the_edge) {
  sim::MarkGroup crowd{"crowd", {}, {}};
  for (int i = 0; i < 300; ++i)
    crowd.marks.push_back({0.01 * (1 + 0.02 * i), 0.5 + 0.001 * (i * 7 % 60), "12.5 %", "", i % 3 == 0});
  const std::vector<Label> labels = labels_of(sim::point_chart(log_axes, {crowd}, "best"));
  BOOST_TEST(labels.size() > 5u);
  BOOST_TEST(labels.size() < 300u);  // for the others there is no room
  for (const Label& a : labels) {
    const double half = 3.1 * static_cast<double>(a.text.size());
    BOOST_TEST((a.x - half >= 70 && a.x + half <= 640));
    for (const Label& b : labels)
      if (&a != &b) BOOST_TEST((std::abs(a.x - b.x) >= 2 * half - 0.2 || std::abs(a.y - b.y) >= 11.8));
  }
}

BOOST_AUTO_TEST_SUITE_END()
