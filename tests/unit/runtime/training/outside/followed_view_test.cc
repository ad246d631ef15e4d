// A copy that follows a FollowedView only where it says so must show the same.
#include "runtime/training/outside/followed_view.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime/support.h"

using namespace rumor;

namespace {

constexpr std::uint32_t followed_params = 8;

struct Followed {
  Replica replica{RunId{}, test::flat_layout(followed_params), LargeVector<std::int32_t>(followed_params, 5)};
  FollowedView view{followed_params, 1, 3};
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
    if (view.everywhere()) copy.assign(view.values().begin(), view.values().end());
    for (const compress::SharedUpdate& update : view.changed())
      for (const std::uint32_t i : update->index) copy[i] = view.values()[i];
    view.seen();
    return std::equal(copy.begin(), copy.end(), view.values().begin());
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
