#include "runtime/exchange/settling.h"

#include <boost/test/unit_test.hpp>

using namespace rumor;
using Verdict = Settling::Verdict;

namespace {

constexpr TimePoint start{100s};
constexpr Settling::View different{7, true, false, false, true};
constexpr Settling::View equal{7, true, true, true, true};
constexpr Settling::View without_links{7, false, true, false, true};

}  // namespace

BOOST_AUTO_TEST_SUITE(settling)

BOOST_AUTO_TEST_CASE(ends_when_all_neighbours_have_finished_with_the_same) {
  Settling settling;
  BOOST_TEST((settling.judge(start, different) == Verdict::waits));
  BOOST_TEST((settling.judge(start + 3s, equal) == Verdict::done));
}

BOOST_AUTO_TEST_CASE(gives_up_when_nothing_has_arrived_for_long) {
  Settling settling;
  BOOST_TEST((settling.judge(start, different) == Verdict::waits));
  BOOST_TEST((settling.deadline() == start + Settling::stuck));
  BOOST_TEST((settling.judge(start + Settling::stuck - 1ms, different) == Verdict::waits));
  BOOST_TEST((settling.judge(start + Settling::stuck, different) == Verdict::given_up));
}

BOOST_AUTO_TEST_CASE(does_not_give_up_while_updates_arrive) {
  Settling settling;
  Settling::View view = different;
  for (int minutes = 0; minutes < 10; ++minutes, ++view.updates)
    BOOST_TEST((settling.judge(start + 50s * minutes, view) == Verdict::waits));
}

// The last to finish: others have gone with all of it, and one whose link is new says nothing before it goes.
BOOST_AUTO_TEST_CASE(who_is_left_by_those_that_hold_the_same_does_not_wait) {
  Settling settling;
  Settling::View view = different;
  view.handed_over = true;  // by one, and another is new
  BOOST_TEST((settling.judge(start, view) == Verdict::waits));
  BOOST_TEST((settling.judge(start + 1s, without_links) == Verdict::done));
}

BOOST_AUTO_TEST_CASE(what_came_after_is_not_handed_over) {
  Settling settling;
  Settling::View view = different;
  view.handed_over = true;
  BOOST_TEST((settling.judge(start, view) == Verdict::waits));
  view = without_links;
  ++view.updates;
  BOOST_TEST((settling.judge(start + 1s, view) == Verdict::waits));
}

BOOST_AUTO_TEST_CASE(without_links_it_waits_ten_seconds_for_members) {
  Settling settling;
  BOOST_TEST((settling.judge(start, without_links) == Verdict::waits));
  BOOST_TEST((settling.deadline() == start + Settling::alone));
  BOOST_TEST((settling.judge(start + Settling::alone, without_links) == Verdict::done));

  Settling nobody;
  Settling::View view = without_links;
  view.knows_others = false;
  BOOST_TEST((nobody.judge(start, view) == Verdict::done));
}

BOOST_AUTO_TEST_CASE(a_link_that_comes_back_in_time_is_waited_for_like_any) {
  Settling settling;
  BOOST_TEST((settling.judge(start, without_links) == Verdict::waits));
  BOOST_TEST((settling.judge(start + 9s, different) == Verdict::waits));
  BOOST_TEST((settling.judge(start + 20s, different) == Verdict::waits));
  BOOST_TEST((settling.judge(start + 30s, without_links) == Verdict::waits));
  BOOST_TEST((settling.judge(start + 40s, without_links) == Verdict::done));
}

BOOST_AUTO_TEST_SUITE_END()
