// A copy that follows a FollowedView only where it says so must show the same.
#include "runtime/training/outside/followed_view.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/unit/runtime/support.h"

using namespace rumor;

namespace {

constexpr std::uint32_t followed_params = 8;

struct Followed {
  Replica replica{RunId{}, test::flat_layout(followed_params), LargeVector<std::int32_t>(followed_params, 5)};
  FollowedView view{1, 3};
  std::vector<float> copy = std::vector<float>(followed_params, -1.0f);
  Serial alone;
  std::uint64_t seq = 0;

  void arrives(std::vector<std::uint32_t> index) {
    gossip::UpdateHeader header;
    header.key.seq = ++seq;
    const std::vector<std::uint8_t> negative(index.size(), 0);
    replica.apply_own(header, {2, std::move(index), negative, {}});
  }
  void follow() { view.follow(replica, alone); }
  bool copy_follows() {
    if (view.everywhere())
      for (std::uint32_t i = 0; i < followed_params; ++i) copy[i] = view.values()[i];
    for (const compress::SharedUpdate& update : view.changed())
      for (const std::uint32_t i : update->index) copy[i] = view.values()[i];
    view.seen();
    for (std::uint32_t i = 0; i < followed_params; ++i)
      if (copy[i] != std::ldexp(static_cast<float>(replica.weights()[i]), -1)) return false;
    return true;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_copy_begins_with_everything_and_follows_what_arrives) {
  Followed f;
  BOOST_TEST(f.view.everywhere());
  f.follow();
  BOOST_TEST(f.copy_follows());
  BOOST_TEST(f.copy[3] == 2.5f);
  f.arrives({1, 4});
  f.arrives({4});
  f.follow();
  BOOST_TEST(!f.view.everywhere());
  BOOST_TEST(f.view.changed_entries() == 3u);
  BOOST_TEST(f.copy_follows());
  BOOST_TEST(f.copy[4] == 4.5f);
  BOOST_TEST(f.view.changed().empty());
  BOOST_TEST(f.view.entry_bytes() < 200u);
  f.follow();  // nothing came
  BOOST_TEST(f.view.changed_entries() == 0u);
}

BOOST_AUTO_TEST_CASE(too_much_to_remember_is_everything) {
  Followed f;
  f.follow();
  BOOST_TEST(f.copy_follows());
  f.arrives({0, 2});
  f.arrives({5, 7});
  f.follow();
  BOOST_TEST(f.view.everywhere());
  BOOST_TEST(f.view.changed().empty());
  BOOST_TEST(f.copy_follows());
}

// A snapshot may want the weights between two steps: then values are newer than what the view has followed.
BOOST_AUTO_TEST_CASE(weights_that_move_on_are_followed_once_more) {
  Followed f;
  f.follow();
  BOOST_TEST(f.copy_follows());
  f.arrives({3});
  BOOST_TEST(f.view.values()[3] == 2.5f);
  BOOST_TEST(f.replica.weights()[3] == 7);
  BOOST_TEST(f.view.values()[3] == 3.5f);
  BOOST_TEST(f.view.changed().empty());
  f.follow();
  BOOST_TEST(f.view.changed_entries() == 1u);
  BOOST_TEST(f.copy_follows());
}

BOOST_AUTO_TEST_CASE(a_restored_replica_is_read_where_it_was) {
  Followed f;
  f.follow();
  BOOST_TEST(f.copy_follows());
  ReplicaState state = f.replica.state();
  state.weights.assign(followed_params, 9);
  state.fingerprint = f.replica.fingerprinter().of_weights(state.weights);
  BOOST_TEST(f.replica.restore(std::move(state)).ok());
  BOOST_TEST(f.view.values()[0] == 4.5f);
  f.follow();
  BOOST_TEST(f.view.everywhere());
  BOOST_TEST(f.copy_follows());
}

BOOST_AUTO_TEST_CASE(the_weights_outlive_the_replica) {
  Followed f;
  f.follow();
  f.arrives({3});
  f.view.outlive(f.replica);
  BOOST_TEST(f.view.values()[3] == 3.5f);
  BOOST_TEST(f.view.weight_bytes() == sizeof(std::int32_t) * followed_params);
  BOOST_TEST(f.replica.weight_bytes() == 0u);
}
