// Peers that audit each other while they train: honest ones agree, cheats are put out by proofs that all others check.
#include <array>
#include <set>

#include "tests/sim/cheating_swarm.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(audits_by_peers)

namespace {

using test::after_a_segment, test::audited_run, test::check_that_it_is_put_out, test::CheatingSwarm, test::counts_of,
    test::encode_again, test::honest_step, test::updates_of;

}  // namespace

BOOST_AUTO_TEST_CASE(honest_peers_spend_their_share_and_agree) {
  const RunConfig config = audited_run(60'000);
  const auto cluster = test::make_cluster(config, test::lan(4));
  test::finish(*cluster, 600s);
  test::require_all_equal(*cluster, 4);
  const AuditCounts counts = counts_of(*cluster, 4);
  std::uint64_t steps = 0;
  for (std::size_t i = 0; i < 4; ++i) steps += cluster->node(i)->figures().steps;
  const double share = static_cast<double>(counts.agreed) * config.segment / static_cast<double>(steps);
  BOOST_TEST_MESSAGE(counts.agreed << " segments agree, " << counts.cannot_tell << " cannot be told, share " << share);
  BOOST_TEST(counts.differ == 0u);
  BOOST_TEST(counts.cannot_tell <= counts.agreed / 10);
  BOOST_TEST(share > 0.025);
  BOOST_TEST(share < 0.085);
}

BOOST_AUTO_TEST_CASE(random_updates) {
  const auto random = [prng = Prng(7)](ModelTrainer& trainer, const StepPlan& plan) mutable {
    StepResult result = trainer.step(plan);
    std::set<std::uint32_t> positions;
    while (positions.size() < result.update.index.size())
      positions.insert(static_cast<std::uint32_t>(prng.below(trainer.layout().params())));
    result.update.index.assign(positions.begin(), positions.end());
    encode_again(trainer, result);
    return result;
  };
  CheatingSwarm swarm(audited_run(120'000), after_a_segment(random));
  check_that_it_is_put_out("random updates", swarm);
}

BOOST_AUTO_TEST_CASE(honest_updates_that_move_a_tenth_too_far) {
  CheatingSwarm swarm(audited_run(120'000), after_a_segment([](ModelTrainer& trainer, const StepPlan& plan) {
    StepResult result = trainer.step(plan);
    result.update.step += result.update.step / 10;
    encode_again(trainer, result);
    return result;
  }));
  check_that_it_is_put_out("scaled by 1.1", swarm);
}

// At 5 % a cheat is found after 20 segments in the mean, and 99 of 100 after 90.
BOOST_AUTO_TEST_CASE(a_twentieth_of_the_compute_finds_a_twentieth_of_the_segments) {
  const char* given = std::getenv("RUMOR_AUDIT_SEEDS");
  const std::uint64_t seeds = given != nullptr ? std::strtoull(given, nullptr, 10) : 4;
  std::uint64_t segments = 0;
  std::multiset<std::uint64_t> until_found;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto cheat = after_a_segment([](ModelTrainer& trainer, StepPlan plan) {
      plan.rate *= 1.1;
      return trainer.step(plan);
    }, 801);
    CheatingSwarm swarm(audited_run(1'000'000), cheat, {}, seed);
    const std::uint64_t found = swarm.run_until_found(1000s);
    BOOST_REQUIRE(found > 800u);
    segments += (found - 800) / swarm.config.segment;
    until_found.insert((found - 800) / swarm.config.segment);
  }
  BOOST_TEST_MESSAGE(seeds << " cheats: found after " << static_cast<double>(segments) / static_cast<double>(seeds)
                           << " segments in the mean, half of them after "
                           << *std::next(until_found.begin(), static_cast<std::ptrdiff_t>(seeds / 2)) << ", all after "
                           << *until_found.rbegin());
  BOOST_TEST(segments < 60 * seeds);
}

BOOST_AUTO_TEST_CASE(rows_of_another_peer) {
  CheatingSwarm swarm(audited_run(120'000), honest_step, {.rows = {1, 4}});
  check_that_it_is_put_out("other rows", swarm);
}

BOOST_AUTO_TEST_CASE(every_other_step_is_skipped) {
  const auto lazy = [skip = false](ModelTrainer& trainer, StepPlan plan) mutable {
    const StepResult as_told{.samples = trainer.built().samples_of({})};
    plan.flush = skip = !skip;
    StepResult result = trainer.step(plan);
    result.samples = as_told.samples;
    return result;
  };
  CheatingSwarm swarm(audited_run(120'000), after_a_segment(lazy));
  check_that_it_is_put_out("every other step skipped", swarm);
}

BOOST_AUTO_TEST_CASE(updates_of_another_peer_under_its_own_name) {
  CheatingSwarm* self = nullptr;
  CheatingSwarm swarm(audited_run(120'000), after_a_segment([&self](ModelTrainer& trainer, const StepPlan& plan) {
    StepResult result = trainer.step(plan);
    result.update = self->of_another;
    encode_again(trainer, result);
    return result;
  }));
  self = &swarm;
  check_that_it_is_put_out("copies", swarm);
}

BOOST_AUTO_TEST_CASE(a_root_of_another_state) {
  CheatingSwarm swarm(audited_run(120'000), honest_step,
                            {.lie = [lies = 0](Bytes& state) mutable { state[3] ^= ++lies > 1 ? 0x80 : 0; }});
  check_that_it_is_put_out("lies about the root", swarm);
}

// Residual and moments that no trainer can have: not finite, or so large that the next step overflows.
BOOST_AUTO_TEST_CASE(states_of_no_numbers) {
  RunConfig config = audited_run(120'000);
  config.optimizer.kind = "adam";
  using Float = std::array<std::uint8_t, 4>;
  for (const Float value : {Float{0, 0, 0xc0, 0x7f}, Float{0xff, 0xff, 0x7f, 0x7f}})
    for (const bool residual : {true, false}) {
      const auto lie = [value, residual, lies = 0](Bytes& state) mutable {
        if (++lies > 1) std::copy(value.begin(), value.end(), residual ? state.begin() : state.end() - 4);
      };
      CheatingSwarm swarm(config, honest_step, {.lie = lie});
      check_that_it_is_put_out(residual ? "no residual" : "no moments", swarm);
    }
}

// Each segment by itself is right, but not one after the other.
BOOST_AUTO_TEST_CASE(another_state_between_two_segments) {
  CheatingSwarm swarm(audited_run(120'000), [steps = 0](ModelTrainer& trainer, const StepPlan& plan) mutable {
    if (++steps % 8 != 0 || steps == 8) return trainer.step(plan);
    StepResult result = trainer.step(plan);
    std::vector<float> residual(trainer.residual().begin(), trainer.residual().end());
    for (float& waits : residual) waits *= 1.001f;
    BOOST_TEST(trainer.restore(residual, trainer.optimizer_state()).ok());
    return result;
  });
  check_that_it_is_put_out("another state between segments", swarm);
}

BOOST_AUTO_TEST_CASE(a_memory_error_is_withdrawn_by_its_own_peer) {
  bool found = false;
  for (std::uint64_t seed = 1; seed <= 8 && !found; ++seed) {
    const auto one_error = [steps = 0](ModelTrainer& trainer, const StepPlan& plan) mutable {
      StepResult result = trainer.step(plan);
      if (++steps != 60) return result;
      result.update.negative[0] ^= 1;
      encode_again(trainer, result);
      return result;
    };
    CheatingSwarm swarm(audited_run(60'000, 0.5), one_error, {.ignores_charges = false}, seed);
    if (swarm.run_until_found(40s) == 0) continue;  // its segment was not drawn
    found = true;
    test::finish(*swarm.cluster, 900s);
    const std::set<gossip::Revocation> revocations = swarm.revocations();
    BOOST_REQUIRE(revocations.size() == 1u);
    BOOST_TEST((revocations.begin()->kind == gossip::Revocation::Kind::withdrawn));
    BOOST_TEST(revocations.begin()->range.first == 60u);
    BOOST_TEST(updates_of(*swarm.cluster->node(0), swarm.cheat()) == 59u);
  }
  BOOST_TEST(found);
}

// Its states are gone before anybody's wish for them arrives.
BOOST_AUTO_TEST_CASE(without_its_state_a_segment_cannot_be_told) {
  RunConfig config = audited_run(20'000);
  config.segment = 1;
  sim::ClusterOptions options = test::lan(4);
  options.network = sim::NetworkModel::preset("wan").value();
  const auto cluster = test::make_cluster(config, options);
  test::finish(*cluster, 600s);
  const AuditCounts counts = counts_of(*cluster, 4);
  BOOST_TEST(counts.cannot_tell > 0u);
  BOOST_TEST(counts.differ == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
