// Replica, log and snapshots stay in line with each other: when updates are applied, taken back, revoked, and read
// again after a restart.
#include "runtime/replica/held_updates.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/runtime/held.h"

using namespace rumor;
using test::Held;

BOOST_AUTO_TEST_SUITE(held_updates)

namespace {

gossip::StoredUpdate update_of(std::uint8_t stream, std::uint64_t seq) {
  Prng prng = Prng::named(seq, "update", stream);
  return test::stored(test::small_layout(), test::random_update(prng, test::small_layout().params(), 9),
                      test::stream(stream), seq);
}

void accept_all(Held& held, std::uint8_t stream, std::uint64_t last) {
  for (std::uint64_t seq = 1; seq <= last; ++seq) {
    const auto accepted = held.accept(update_of(stream, seq));
    BOOST_TEST_REQUIRE(accepted.ok());
    BOOST_TEST((*accepted == gossip::Accepted::applied));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_update_is_applied_and_kept_for_others_once) {
  Held held;
  accept_all(held, 1, 1);
  const gossip::ReplicaDigest once = held.digest();
  BOOST_TEST((held.accept(update_of(1, 1)).value() == gossip::Accepted::duplicate));
  BOOST_TEST((held.digest() == once));
  BOOST_TEST(held.log().size() == 1u);
  BOOST_TEST(held.keeps({test::stream(1), 1}));
  BOOST_TEST(*held.find({test::stream(1), 1})->payload == *update_of(1, 1).payload);
  BOOST_TEST(held.verify());
}

BOOST_AUTO_TEST_CASE(a_wrong_fingerprint_changes_nothing) {
  Held held;
  gossip::StoredUpdate update = update_of(1, 1);
  ++update.header.fingerprint;
  BOOST_TEST(!held.accept(update).ok());
  BOOST_TEST(held.have().empty());
  BOOST_TEST(held.log().size() == 0u);
}

BOOST_AUTO_TEST_CASE(taking_back_restores_weights_names_and_log) {
  Held held;
  accept_all(held, 1, 3);
  const gossip::ReplicaDigest before = held.digest();
  accept_all(held, 2, 1);
  BOOST_TEST_REQUIRE(held.take_back({test::stream(2), 1}).ok());
  BOOST_TEST((held.digest() == before));
  BOOST_TEST(!held.keeps({test::stream(2), 1}));
  BOOST_TEST(held.verify());
  BOOST_TEST((held.take_back({test::stream(2), 1}).error().code == Errc::limit));
}

BOOST_AUTO_TEST_CASE(a_revocation_takes_back_its_range_or_nothing) {
  Held held;
  accept_all(held, 1, 4);
  gossip::Revocation revocation{test::node(1), test::stream(1), {2, 3}};
  BOOST_TEST_REQUIRE(held.take_back({test::stream(1), 4}).ok());
  BOOST_TEST_REQUIRE(held.revoke(revocation).ok());
  BOOST_TEST(held.have().count() == 1u);
  BOOST_TEST(held.revocations().contains(revocation));
  BOOST_TEST(held.replica().is_revoked({test::stream(1), 3}));
  BOOST_TEST(held.verify());

  Held forgetful(1);  // its log keeps the newest update only
  accept_all(forgetful, 1, 4);
  const gossip::ReplicaDigest before = forgetful.digest();
  BOOST_TEST((forgetful.revoke(revocation).error().code == Errc::limit));
  BOOST_TEST((forgetful.digest() == before));
}

BOOST_AUTO_TEST_CASE(after_a_restart_the_log_gives_the_checkpoint_what_it_lacks) {
  MemoryDisk disk;
  ReplicaState checkpoint;
  gossip::ReplicaDigest last;
  {
    Held held;
    BOOST_TEST_REQUIRE(held.open(disk).value() == 0u);
    accept_all(held, 1, 2);
    checkpoint = held.replica().state();
    accept_all(held, 2, 3);
    last = held.digest();
  }
  Held again;
  BOOST_TEST_REQUIRE(again.open(disk).value() == 0u);
  BOOST_TEST_REQUIRE(again.replica().restore(checkpoint).ok());
  BOOST_TEST(again.replay());
  BOOST_TEST((again.digest() == last));
  BOOST_TEST(again.verify());
  BOOST_TEST(!again.replay());
}

// The updates in the log that the snapshot lacks go on top of it.
BOOST_AUTO_TEST_CASE(a_snapshot_is_installed_under_the_log) {
  Held giver, taker;
  accept_all(giver, 1, 3);
  accept_all(taker, 2, 2);
  test::give_snapshot(giver, taker);
  BOOST_TEST(taker.have().count() == 5u);
  accept_all(giver, 2, 2);
  BOOST_TEST((taker.digest() == giver.digest()));
  BOOST_TEST(taker.verify());
}

BOOST_AUTO_TEST_SUITE_END()
