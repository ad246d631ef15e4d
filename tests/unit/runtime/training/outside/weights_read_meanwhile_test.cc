// A program's loop reads weights of the replica while the protocol thread adds to them. Run under the thread sanitizer.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <thread>

#include "runtime/threads/thread_pool.h"
#include "runtime/training/outside/followed_view.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(weights_read_meanwhile)

namespace {

constexpr std::uint32_t read_params = 4096;
constexpr int added_step = 3, rounds = 300;

gossip::UpdateHeader header_of(std::uint64_t seq) {
  gossip::UpdateHeader header;
  header.key.seq = seq;
  return header;
}

// Every second, third ... weight grows by one step.
compress::SparseUpdate every(std::uint32_t stride) {
  compress::SparseUpdate update;
  update.step = added_step;
  for (std::uint32_t i = 0; i < read_params; i += stride) update.index.push_back(i);
  update.negative.assign(update.index.size(), 0);
  return update;
}

// Passes over all weights until `over`. Returns how many values were no whole steps, or less than they were before.
std::uint64_t wrong_values(const compress::WeightView& weights, const std::atomic<bool>& over) {
  std::vector<float> before(read_params, 0.0f);
  std::uint64_t wrong = 0;
  do {
    for (std::uint32_t i = 0; i < read_params; ++i) {
      const float value = weights[i];
      wrong += value < before[i] || static_cast<int>(value) % added_step != 0;
      before[i] = value;
    }
  } while (!over);
  return wrong;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_weight_is_read_as_it_was_or_as_it_is) {
  Replica replica(RunId{}, ParamLayout::create({{"all", {read_params}}}).value(),
                  LargeVector<std::int32_t>(read_params, 0));
  daemon::ThreadPool pool(2);
  FollowedView view(0, read_params);
  view.follow(replica, pool);
  std::atomic<bool> over = false;
  std::uint64_t wrong = 0;
  std::thread reader([&, weights = view.values()] { wrong = wrong_values(weights, over); });
  for (int round = 1; round <= rounds; ++round) {
    gossip::UpdateHeader header = header_of(static_cast<std::uint64_t>(round));
    replica.apply_own(header, every(2 + static_cast<std::uint32_t>(round) % 5));
    if (round % 3 == 0)
      while (!replica.apply_some(1000)) {
      }
    if (round % 7 == 0) BOOST_TEST(replica.weights()[0] == round * added_step);  // as a snapshot does
    if (round == rounds / 2) {
      ReplicaState state = replica.state();
      BOOST_TEST_REQUIRE(replica.restore(std::move(state)).ok());
    }
  }
  over = true;
  reader.join();
  BOOST_TEST(wrong == 0u);
  view.follow(replica, pool);
  BOOST_TEST(view.values()[0] == static_cast<float>(rounds * added_step));
}

BOOST_AUTO_TEST_SUITE_END()
