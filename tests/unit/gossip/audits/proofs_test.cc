// Proofs: a cheat's updates are taken back from every replica, and nobody acts on a proof that he has not checked.
#include "gossip/audits/proofs.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/gossip/audits/audited_world.h"

namespace rumor::gossip {

namespace {

using test::AuditedWorld;
using test::run_named;

// The last node has made ten updates, as all the others.
struct Cheated : AuditedWorld {
  explicit Cheated(std::size_t nodes, std::uint64_t seed = 1) : AuditedWorld(nodes, seed), cheat(nodes - 1) {
    start();
    world.publish_all(1s, 10);
    BOOST_TEST_REQUIRE(world.run_while(20s, [&] { return world.now > TimePoint{} + 4s && world.all_equal(); }));
  }
  Revocation proof(std::uint64_t seq) const {
    return Revocation::proof(world.nodes[cheat].id, update_of(cheat, seq), {});
  }
  bool same_as_first(std::size_t i) const {
    return world.nodes[i].store->digest() == world.nodes[0].store->digest();
  }
  std::size_t cheat;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(proofs)

BOOST_AUTO_TEST_CASE(everybody_checks_and_takes_back_from_the_proven_update_on) {
  Cheated run(5);
  BOOST_TEST(run.world.revoke(0, run.proof(4)).ok());
  run.world.run_for(1s);
  for (std::size_t i = 1; i < 4; ++i) {
    BOOST_TEST(run.held(i, run.cheat) == 10u);  // not checked yet
    BOOST_TEST(run.auditors[i].checks.size() == 1u);
    run.answer(i, Checked::differs);
  }
  run.world.run_for(1s);
  for (std::size_t i = 0; i < 4; ++i) {
    BOOST_TEST(run.held(i, run.cheat) == 3u);
    BOOST_TEST(run.same_as_first(i));
    BOOST_TEST(run.world.nodes[i].protocol->peers().size() == 3u);
    BOOST_TEST(run.auditors[i].checks.empty());  // the same proof from further links is no news
  }
  // A new stream of the cheat is nobody's either.
  run.world.kill(run.cheat);
  run.world.start(run.cheat, {"n0"});
  run.world.run_for(3s);
  BOOST_TEST(run.world.nodes[run.cheat].protocol->peers().empty());
}

BOOST_AUTO_TEST_CASE(what_came_before_in_other_streams_stays) {
  Cheated run(3);
  const UpdateKey before = run.update_of(run.cheat, 10);
  run.world.kill(run.cheat);
  run.world.start(run.cheat, {"n0"});
  run.world.run_for(2s);
  for (int i = 0; i < 5; ++i) run.world.publish(run.cheat);
  run.world.run_for(1s);
  const Revocation proof =
      Revocation::proof(run.world.nodes[run.cheat].id, run.update_of(run.cheat, 1), {{before.stream, 7}});
  BOOST_TEST(run.world.revoke(0, proof).ok());
  run.world.run_for(500ms);
  run.answer(1, Checked::differs);
  run.world.run_for(500ms);
  for (std::size_t i = 0; i < 2; ++i) {
    BOOST_TEST(run.held(i, run.cheat) == 0u);
    BOOST_TEST(ranges_count(run.world.nodes[i].store->have().streams().at(before.stream)) == 7u);
  }
  BOOST_TEST(run.same_as_first(1));
}

BOOST_AUTO_TEST_CASE(a_false_proof_costs_its_sender_the_links) {
  Cheated run(4);
  const std::size_t liar = 1, accused = run.cheat;
  const Bytes frame = encode(TakenBack{run.proof(4)});
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) run.world.inject(liar, i, frame);
  run.world.run_for(500ms);
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    BOOST_TEST(run.auditors[i].checks.size() == 1u);
    run.answer(i, Checked::agrees);
  }
  run.world.run_for(2s);
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    BOOST_TEST(run.held(i, accused) == 10u);
    BOOST_TEST(run.world.nodes[i].protocol->peers().size() == 2u);  // not the liar
  }
  // The same proof again is not worth another check.
  run.world.inject(accused, 0, frame);
  run.world.run_for(500ms);
  BOOST_TEST(run.auditors[0].checks.empty());
  BOOST_TEST(run.world.nodes[0].protocol->peers().size() == 1u);
}

BOOST_AUTO_TEST_CASE(who_cannot_tell_follows_most_of_its_links) {
  Cheated run(6);
  for (std::size_t i = 0; i < 2; ++i) BOOST_TEST(run.world.revoke(i, run.proof(2)).ok());
  run.world.run_for(500ms);
  run.answer(4, Checked::cannot_tell);
  run.world.run_for(500ms);
  BOOST_TEST(run.held(4, run.cheat) == 10u);  // two of five links
  run.world.run_for(10s);
  BOOST_TEST(run.auditors[4].checks.size() == 1u);  // asked again
  run.answer(4, Checked::cannot_tell);
  BOOST_TEST(run.held(4, run.cheat) == 10u);
  run.answer(2, Checked::differs);
  run.world.run_for(500ms);
  BOOST_TEST(run.held(4, run.cheat) == 1u);
}

BOOST_AUTO_TEST_CASE(the_proof_may_come_before_the_updates) {
  Cheated run(4);
  const std::uint64_t seq = 12;
  for (std::size_t i = 0; i < 2; ++i) BOOST_TEST(run.world.revoke(i, run.proof(seq)).ok());
  run.world.run_for(200ms);
  run.answer(2, Checked::differs);
  for (int i = 0; i < 5; ++i) run.world.publish(run.cheat);
  run.world.run_for(3s);
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(run.held(i, run.cheat) <= seq - 1);
    BOOST_TEST(run.same_as_first(i));
  }
}

// Two accusers prove different updates while half of the network is cut off, and checks take different times.
BOOST_AUTO_TEST_CASE(the_order_does_not_matter) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Cheated run(6, seed);
    Prng prng(seed);
    run.world.partition({0, 1, 2});
    BOOST_TEST(run.world.revoke(0, run.proof(4)).ok());
    BOOST_TEST(run.world.revoke(3, run.proof(7)).ok());
    run.world.publish_all(1s, 10);
    for (int i = 0; i < 40; ++i) {
      if (i == 10) run.world.heal();
      run.answer(prng.below(run.cheat), Checked::differs);
      run.world.run_for(100ms);
    }
    const auto all_follow = [&] {
      for (std::size_t i = 0; i < run.cheat; ++i) {
        run.answer(i, Checked::differs);
        if (!run.same_as_first(i)) return false;
      }
      return true;
    };
    BOOST_TEST(run.world.run_while(120s, all_follow));
    for (std::size_t i = 0; i < run.cheat; ++i) {
      BOOST_TEST(run.held(i, run.cheat) == 3u);
      BOOST_TEST(run.world.nodes[i].store->revocations().size() == 1u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_late_joiner_takes_it_with_the_weights) {
  Cheated run(4);
  run.world.kill(2);
  run.world.publish_all(300ms, 10);
  run.world.run_for(1s);
  BOOST_TEST(run.world.revoke(0, run.proof(3)).ok());
  run.world.run_for(200ms);
  run.answer(1, Checked::differs);
  run.world.nodes[0].store->trim_log();
  run.world.nodes[1].store->trim_log();
  run.world.start(2, {"n0"});
  run.world.run_for(500ms);
  run.answer(2, Checked::cannot_tell);
  BOOST_TEST(run.world.run_while(60s, [&] {
    run.answer(2, Checked::cannot_tell);
    return run.same_as_first(2);
  }));
  BOOST_TEST(run.held(2, run.cheat) == 2u);
}

BOOST_AUTO_TEST_CASE(without_an_auditor_nothing_is_taken_back) {
  Cheated run(2);
  test::World plain(2);
  plain.start_all();
  plain.run_for(1s);
  plain.publish(1);
  plain.run_for(1s);
  plain.inject(1, 0, encode(TakenBack{Revocation::proof(plain.nodes[1].id, {plain.nodes[1].stream, 1}, {})}));
  Revocation withdrawal = Revocation::withdrawal(plain.nodes[1].id, {plain.nodes[1].stream, 1});
  withdrawal.signature = plain.nodes[1].keys->sign(revoke_message(run_named(1), withdrawal));
  plain.inject(1, 0, encode(TakenBack{withdrawal}));
  plain.run_for(1s);
  BOOST_TEST(plain.nodes[0].store->have().count() == 1u);
  BOOST_TEST(plain.link_count() == 1u);
}

BOOST_AUTO_TEST_CASE(proofs_that_wait_are_bounded) {
  Cheated run(3);
  for (std::uint64_t seq = 1; seq <= 30; ++seq) run.world.inject(1, 0, encode(TakenBack{run.proof(seq + 100)}));
  run.world.run_for(1s);
  BOOST_TEST(run.auditors[0].checks.size() == Proofs::waiting_max);
}

// ---- withdrawals and charges ----

BOOST_AUTO_TEST_CASE(an_origin_withdraws_and_stays) {
  Cheated run(4);
  run.world.with(run.cheat, [&](Protocol& protocol, TimePoint now, Outbox& out) {
    BOOST_TEST(protocol.withdraw(8, now, out).ok());
  });
  run.world.run_for(1s);
  BOOST_TEST(run.world.all_equal());
  BOOST_TEST(run.held(0, run.cheat) == 7u);
  BOOST_TEST(run.world.link_count() == 6u);
  run.world.kill(run.cheat);
  run.world.start(run.cheat, {"n0"});
  run.world.run_for(2s);
  run.world.publish(run.cheat);
  run.world.run_for(1s);
  BOOST_TEST(run.held(0, run.cheat) == 1u);
  BOOST_TEST(run.world.all_equal());
}

BOOST_AUTO_TEST_CASE(nobody_withdraws_for_another) {
  Cheated run(3);
  Revocation forged = Revocation::withdrawal(run.world.nodes[2].id, run.update_of(2, 3));
  forged.signature = run.world.nodes[1].keys->sign(revoke_message(run_named(1), forged));
  run.world.inject(1, 0, encode(TakenBack{forged}));
  run.world.run_for(1s);
  BOOST_TEST(run.held(0, 2) == 10u);
  BOOST_TEST(run.world.nodes[0].protocol->peers().size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_charge_reaches_the_origin_alone) {
  Cheated run(3);
  run.world.with(0, [&](Protocol& protocol, TimePoint now, Outbox& out) {
    protocol.charge(run.update_of(2, 5), run.world.nodes[2].id, now, out);
  });
  // Neither an update of another peer nor one that does not exist.
  run.world.inject(0, 1, encode(Charge{run.update_of(2, 5)}));
  run.world.inject(0, 1, encode(Charge{run.update_of(1, 99)}));
  run.world.run_for(500ms);
  BOOST_TEST(run.auditors[1].charges.empty());
  BOOST_TEST_REQUIRE(run.auditors[2].charges.size() == 1u);
  BOOST_TEST((run.auditors[2].charges[0] == run.update_of(2, 5)));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip
