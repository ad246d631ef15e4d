// Audits of single segments: each can be made again by itself from the state at its start, and roots cannot lie.
#include <map>

#include "models/data/data_hash.h"
#include "runtime/audit/run_audit.h"
#include "tests/sim/support.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(segments)

namespace {

RunConfig in_segments(std::uint64_t samples = 4000) {
  RunConfig config = test::small_run(samples);
  config.records = true;
  config.segment = 4;
  return config;
}

using States = std::map<UpdateKey, Bytes>;  // by the first update of a segment

// Runs to the end and keeps every state that a peer had at the start of a segment.
States finish(sim::Cluster& cluster, std::size_t nodes) {
  States states;
  const TimePoint end = cluster.now() + 3000s;
  while (!cluster.all_complete() && cluster.now() < end) {
    cluster.run_until(cluster.now() + 10ms);
    for (std::size_t i = 0; i < nodes; ++i) {
      const Node* node = cluster.node(i);
      if (node == nullptr) continue;
      for (std::uint64_t first = 1; first <= node->figures().own_updates() + 1; first += node->config().segment)
        if (const auto kept = node->kept_states().find(first))
          states.emplace(UpdateKey{node->stream(), first}, kept->bytes);
    }
  }
  BOOST_REQUIRE(cluster.all_complete());
  return states;
}

struct Counted {
  std::uint64_t segments = 0, roots = 0, agree = 0, cannot_tell = 0;
  std::map<UpdateKey, std::string> differ;
};

// Each segment by itself, from the newest weights of node 0 and its log.
Counted audit_each(const RunConfig& config, const sim::Cluster& cluster, const States& states) {
  const Node& node = *cluster.node(0);
  const Hash256 data_hash = models::training_data_hash(*test::small_data());
  const audit::AuditedRun run{config, node.form(), test::small_data(), data_hash, node.log(), node.replica().state()};
  Counted counted;
  for (const auto& [key, state] : states) {
    const auto first = node.log().find(key);
    if (!first) continue;
    ++counted.segments;
    audit::StreamReplay replay(run, first->header.origin, key.stream, key.seq, state);
    audit::Finding found;
    std::uint64_t seq = key.seq;
    for (; seq < key.seq + config.segment && found.verdict == audit::Verdict::agrees; ++seq)
      if (const auto update = node.log().find({key.stream, seq})) found = replay.next(*update);
    const auto next = node.log().find({key.stream, key.seq + config.segment});
    if (next && found.verdict == audit::Verdict::agrees) {
      ++counted.roots;
      found = replay.compare_state(*next);
    }
    counted.agree += found.verdict == audit::Verdict::agrees ? 1 : 0;
    counted.cannot_tell += found.verdict == audit::Verdict::cannot_tell ? 1 : 0;
    if (found.verdict == audit::Verdict::cannot_tell) BOOST_TEST_MESSAGE(key.seq << " cannot be told: " << found.why);
    if (found.verdict == audit::Verdict::differs) counted.differ.emplace(UpdateKey{key.stream, seq - 1}, found.why);
  }
  return counted;
}

void check_that_each_agrees(const RunConfig& config, sim::ClusterOptions options) {
  options.network = sim::NetworkModel::preset("wan").value();  // several updates in flight
  const auto cluster = test::make_cluster(config, options);
  const States states = finish(*cluster, options.nodes);
  const Counted counted = audit_each(config, *cluster, states);
  for (const auto& [key, why] : counted.differ) BOOST_TEST_MESSAGE("update " << key.seq << ": " << why);
  BOOST_TEST(counted.segments > 4 * options.nodes);
  BOOST_TEST(counted.roots >= counted.segments - options.nodes);
  BOOST_TEST(counted.agree == counted.segments);
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_can_be_made_again_by_itself) { check_that_each_agrees(in_segments(), test::lan(4)); }

BOOST_AUTO_TEST_CASE(moments_and_rounds_and_entries_owed_to_tensors) {
  RunConfig config = in_segments(12'000);
  config.model.hidden = {8, 8};
  config.optimizer.kind = "muon";
  config.rate = 0.02;
  config.round_rules.local_steps = 0;
  config.emit = compress::Emit::mean;
  config.scope = compress::Scope::tensor;
  check_that_each_agrees(config, test::lan(3));
}

BOOST_AUTO_TEST_CASE(mini_batches_that_follow_the_number_of_peers) {
  RunConfig config = in_segments(12'000);
  config.batch = 8;
  config.global_batch = 12;
  check_that_each_agrees(config, test::lan(5));
}

BOOST_AUTO_TEST_CASE(pictures_from_low_to_full_resolution) {
  check_that_each_agrees(test::in_sizes(in_segments()), test::lan(4));
}

BOOST_AUTO_TEST_CASE(adam_and_a_flush) {
  RunConfig config = in_segments();
  config.optimizer.kind = "adam";
  config.rate = 0.002;
  config.flush_bits = 6;
  check_that_each_agrees(config, test::lan(3));
}

BOOST_AUTO_TEST_CASE(steps_that_are_held_back_belong_to_the_segment_of_their_update) {
  RunConfig config = in_segments(12'000);
  config.density = 0.1;
  sim::ClusterOptions options = test::lan(4);
  options.network = {"narrow", 100ms, 100ms, 5ms, 4'000, 10'000};
  const auto cluster = test::make_cluster(config, options);
  const States states = finish(*cluster, 4);
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < 4; ++i) held += cluster->node(i)->figures().steps_held;
  BOOST_TEST(held > 0u);
  const Counted counted = audit_each(config, *cluster, states);
  BOOST_TEST(counted.segments > 8u);
  BOOST_TEST(counted.agree == counted.segments);
}

BOOST_AUTO_TEST_SUITE_END()
