// A loop that returns to older weights every few steps is found; a steep loss, momentum and noise are no such loops.
#include "runtime/training/outside/jumps_back.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "runtime/base/prng.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(jumps_back)

namespace {

constexpr std::size_t weights = 1000;

float noise(Prng& prng) { return static_cast<float>(prng.below(2001)) * 1e-3f - 1; }

// A loop on `weights` that others change in every third place by up to 0.01 each step.
struct Loop {
  double steep = 0;     // the share of each distance from the optimum, 0, that a step takes back
  double momentum = 0;
  double own = 0.002;   // how far it moves by chance
  int every = 0;        // steps between two returns to older weights; 0: none
  double back = 0.5;    // how far it returns
  int gathers = 1;      // steps of which the last moves the weights

  bool is_found(int steps = 400) const {
    JumpsBack jumps;
    Prng prng(3);
    std::vector<float> at(weights), older = at, speed(weights), change(weights);
    for (int step = 1; step <= steps && !jumps.found(); ++step) {
      std::vector<WeightWrite> writes;
      for (std::uint32_t i = 0; i < weights; i += 3) {
        writes.push_back({i, 0.01f * noise(prng)});
        at[i] += writes.back().by;
      }
      jumps.follow(writes);
      const std::vector<float> before = at;
      for (std::size_t i = 0; i < weights; ++i) move(step, at[i], speed[i], older[i], prng);
      for (std::size_t i = 0; i < weights; ++i) change[i] = at[i] - before[i];
      jumps.look(change);
    }
    return jumps.found();
  }

  void move(int step, float& at, float& speed, float& older, Prng& prng) const {
    if (step % gathers != 0) return;
    speed = static_cast<float>(momentum * speed - steep * at + own * noise(prng));
    at += speed;
    if (every == 0 || step % every != 0) return;
    at += static_cast<float>(back) * (older - at);
    older = at;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_loop_that_returns_every_few_steps) {
  BOOST_TEST(Loop{.every = 5}.is_found());
  BOOST_TEST(Loop{.every = 10}.is_found());
  BOOST_TEST((Loop{.every = 5, .back = 1}.is_found()));
  BOOST_TEST((Loop{.steep = 0.02, .momentum = 0.9, .every = 6}.is_found()));
}

BOOST_AUTO_TEST_CASE(a_loop_that_never_returns) {
  for (const double steep : {0.0, 0.01, 0.1, 0.5, 0.9})
    for (const double momentum : {0.0, 0.5, 0.9})
      for (const double own : {0.0, 0.002, 0.1})
        for (const int gathers : {1, 4})
          BOOST_TEST(!(Loop{.steep = steep, .momentum = momentum, .own = own, .gathers = gathers}.is_found()),
                     steep << ' ' << momentum << ' ' << own << ' ' << gathers);
}

BOOST_AUTO_TEST_CASE(what_was_written_for_another_reason_is_not_followed) {
  JumpsBack jumps;
  std::vector<float> change(weights);
  for (int step = 0; step < 400; ++step) {
    std::vector<WeightWrite> writes;
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < weights; ++i) {
      writes.push_back({i, 0.5f});
      all.push_back(i);
    }
    jumps.follow(writes);
    jumps.leave_out(all);
    std::fill(change.begin(), change.end(), step % 5 == 4 ? -0.5f : 1e-3f);
    jumps.look(change);
  }
  BOOST_TEST(!jumps.found());
}

BOOST_AUTO_TEST_SUITE_END()
