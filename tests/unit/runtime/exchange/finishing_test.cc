#include "runtime/exchange/finishing.h"

#include <boost/test/unit_test.hpp>

using namespace rumor;
using Verdict = Finishing::Verdict;

namespace {

constexpr TimePoint start{100s};
constexpr Finishing::View different{7, true, false, false, true};
constexpr Finishing::View equal{7, true, true, true, true};
constexpr Finishing::View without_links{7, false, true, false, true};

}  // namespace

BOOST_AUTO_TEST_SUITE(finishing)

BOOST_AUTO_TEST_CASE(ends_when_all_neighbours_have_finished_with_the_same) {
  Finishing finishing;
  BOOST_TEST((finishing.judge(start, different) == Verdict::waits));
  BOOST_TEST((finishing.judge(start + 3s, equal) == Verdict::done));
}

BOOST_AUTO_TEST_CASE(a_follower_waits_for_quiet_or_until_its_neighbour_leaves) {
  Finishing finishing;
  Finishing::View view = equal;
  view.follows = true;
  BOOST_TEST((finishing.judge(start, view) == Verdict::waits));
  BOOST_TEST((finishing.deadline() == start + Finishing::quiet));
  ++view.updates;
  BOOST_TEST((finishing.judge(start + 4s, view) == Verdict::waits));
  BOOST_TEST((finishing.judge(start + 4s + Finishing::quiet, view) == Verdict::done));

  Finishing left;
  BOOST_TEST((left.judge(start, view) == Verdict::waits));
  view.has_links = false;
  BOOST_TEST((left.judge(start + 1s, view) == Verdict::done));
}

BOOST_AUTO_TEST_CASE(gives_up_when_nothing_has_arrived_for_long) {
  Finishing finishing;
  BOOST_TEST((finishing.judge(start, different) == Verdict::waits));
  BOOST_TEST((finishing.deadline() == start + Finishing::stuck));
  BOOST_TEST((finishing.judge(start + Finishing::stuck - 1ms, different) == Verdict::waits));
  BOOST_TEST((finishing.judge(start + Finishing::stuck, different) == Verdict::given_up));
}

BOOST_AUTO_TEST_CASE(does_not_give_up_while_updates_arrive) {
  Finishing finishing;
  Finishing::View view = different;
  for (int minutes = 0; minutes < 10; ++minutes, ++view.updates)
    BOOST_TEST((finishing.judge(start + 50s * minutes, view) == Verdict::waits));
}

// The last peer to finish: the others left with equal replicas, and one with a new link leaves without a digest.
BOOST_AUTO_TEST_CASE(a_peer_left_by_those_that_hold_the_same_does_not_wait) {
  Finishing finishing;
  Finishing::View view = different;
  view.handed_over = true;  // by one, and another is new
  BOOST_TEST((finishing.judge(start, view) == Verdict::waits));
  BOOST_TEST((finishing.judge(start + 1s, without_links) == Verdict::done));
}

BOOST_AUTO_TEST_CASE(later_updates_are_not_handed_over) {
  Finishing finishing;
  Finishing::View view = different;
  view.handed_over = true;
  BOOST_TEST((finishing.judge(start, view) == Verdict::waits));
  view = without_links;
  ++view.updates;
  BOOST_TEST((finishing.judge(start + 1s, view) == Verdict::waits));
}

BOOST_AUTO_TEST_CASE(without_links_it_waits_ten_seconds_for_members) {
  Finishing finishing;
  BOOST_TEST((finishing.judge(start, without_links) == Verdict::waits));
  BOOST_TEST((finishing.deadline() == start + Finishing::alone));
  BOOST_TEST((finishing.judge(start + Finishing::alone, without_links) == Verdict::done));

  Finishing nobody;
  Finishing::View view = without_links;
  view.knows_others = false;
  BOOST_TEST((nobody.judge(start, view) == Verdict::done));
}

BOOST_AUTO_TEST_CASE(a_link_that_comes_back_in_time_is_waited_for_like_any) {
  Finishing finishing;
  BOOST_TEST((finishing.judge(start, without_links) == Verdict::waits));
  BOOST_TEST((finishing.judge(start + 9s, different) == Verdict::waits));
  BOOST_TEST((finishing.judge(start + 20s, different) == Verdict::waits));
  BOOST_TEST((finishing.judge(start + 30s, without_links) == Verdict::waits));
  BOOST_TEST((finishing.judge(start + 40s, without_links) == Verdict::done));
}

BOOST_AUTO_TEST_SUITE_END()
