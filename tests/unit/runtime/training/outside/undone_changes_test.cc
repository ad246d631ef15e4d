// A loop that takes changes back is found; one that goes on from them is not.
#include "runtime/training/outside/undone_changes.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "runtime/base/prng.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(undone_changes)

namespace {

// From -1 to 1.
float noise(Prng& prng) { return static_cast<float>(prng.below(2001)) * 1e-3f - 1; }

// Whether it is found, where the loop takes back `share` of what was written in the first `steps` steps, and moves by
// `own` in all of them. Every `apart`-th weight is written.
bool found(double share, double own, int steps = 40, std::uint32_t apart = 3) {
  UndoneChanges undone;
  Prng prng(3);
  std::vector<float> change(1000);
  for (int step = 0; step < 40 * static_cast<int>(apart) / 3; ++step) {
    if (step == steps) share = 0;
    std::vector<float> by(change.size());
    for (std::uint32_t i = 0; i < change.size(); i += apart) {
      by[i] = 0.01f * noise(prng);
      undone.wrote(i, 1.0f, 1.0f + by[i]);
    }
    for (std::size_t i = 0; i < change.size(); ++i)
      change[i] = static_cast<float>(own * static_cast<double>(noise(prng)) - share * static_cast<double>(by[i]));
    undone.look(change);
    if (undone.found()) return true;
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_loop_that_writes_its_own_weights_over_those_of_others) {
  BOOST_TEST(found(1, 0));
  BOOST_TEST(found(1, 0.01));
  BOOST_TEST(found(1, 0.03));
  BOOST_TEST(found(0.9, 0.01, 10'000, 99));  // updates of eleven entries
}

BOOST_AUTO_TEST_CASE(a_loop_that_goes_on_from_them) {
  BOOST_TEST(!found(0, 0.001));
  BOOST_TEST(!found(0, 0.03));
  BOOST_TEST(!found(0.2, 0.01));
  BOOST_TEST(!found(-1, 0.01));  // it learns the same as the others
  BOOST_TEST(!found(0.9, 0.01, 12));  // steep at first
  BOOST_TEST(!found(0.5, 0.01));      // steep throughout
  BOOST_TEST(!found(0, 100));         // its own steps hide those of others
}

BOOST_AUTO_TEST_CASE(what_was_written_for_another_reason_is_no_sign) {
  UndoneChanges undone;
  const std::vector<float> change(400, -0.5f);
  std::vector<std::uint32_t> all(change.size());
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  for (int step = 0; step < 60; ++step) {
    for (const std::uint32_t i : all) undone.wrote(i, 0, 0.5f);
    undone.leave_out(all);
    undone.look(change);
  }
  BOOST_TEST(!undone.found());
}

BOOST_AUTO_TEST_CASE(it_is_told_once) {
  UndoneChanges undone;
  std::vector<float> change(400, -0.5f);
  int times = 0;
  for (int step = 0; step < 60; ++step) {
    for (std::uint32_t i = 0; i < change.size(); ++i) undone.wrote(i, 0, 0.5f);
    undone.look(change);
    times += undone.found();
  }
  BOOST_TEST(times == 1);
}

BOOST_AUTO_TEST_SUITE_END()
