// A small cluster for scenarios: a model of a few hundred parameters, hundreds of updates, milliseconds of
// real time.
#pragma once

#include <boost/test/unit_test.hpp>

#include "runtime/sim/experiments/simulate.h"

namespace rumor::test {

inline RunConfig small_run(std::uint64_t samples = 8000) {
  RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  config.model.hidden = {8};
  config.samples = samples;
  config.density = 0.02;
  return config;
}

// The same run with a small convolutional network, whose pictures of 8 x 8 begin with 2 x 2 and go on with 4 x 4.
inline RunConfig in_sizes(RunConfig config) {
  config.model.family = "cnn";
  config.model.stage_channels = {8};
  config.model.groups = 2;
  config.model.hidden = {16};
  config.rate = 0.1;
  config.resolution = {{{0, 2}, {0.3, 4}, {0.6, 8}}};
  return config;
}

inline std::shared_ptr<const models::DataSet> small_data() {
  static const std::shared_ptr<const models::DataSet> data = models::load_data({"synthetic", "", 1}).value();
  return data;
}

inline sim::ClusterOptions lan(std::size_t nodes, std::uint64_t seed = 1) {
  sim::ClusterOptions options;
  options.nodes = nodes;
  options.seed = seed;
  options.network = sim::NetworkModel::preset("lan").value();
  return options;
}

inline std::unique_ptr<sim::Cluster> make_cluster(const RunConfig& config,
                                                  const sim::ClusterOptions& options) {
  auto cluster = sim::Cluster::create(config, small_data(), options);
  BOOST_REQUIRE_MESSAGE(cluster.ok(), (cluster.ok() ? "" : cluster.error().text));
  return std::move(cluster).value();
}

// A whole run on the small data, in whichever mode.
inline sim::SimResult run(const RunConfig& config, const sim::ClusterOptions& options) {
  auto result = sim::simulate(config, small_data(), options, nullptr);
  BOOST_REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text));
  return std::move(result).value();
}

// Every living node holds the same bits: those of the sum of everything published.
inline void require_all_equal(const sim::Cluster& cluster, std::size_t nodes) {
  const std::vector<std::int32_t> oracle = cluster.oracle();
  const Node* first = nullptr;
  for (std::size_t i = 0; i < nodes; ++i) {
    const Node* node = cluster.node(i);
    if (node == nullptr) continue;
    if (first == nullptr) first = node;
    node->check_invariants();
    BOOST_TEST_CONTEXT("node " << i) {
      BOOST_TEST((node->replica().digest() == first->replica().digest()));
      BOOST_TEST(std::equal(oracle.begin(), oracle.end(), node->replica().weights().begin()));
    }
  }
}

// Peers with models of their own: every neighbour's copy is held to the last bit, once all is quiet; and sums are what
// they should be.
inline void check_held_copies(const sim::Cluster& cluster, std::size_t nodes) {
  std::size_t held = 0;
  for (std::size_t i = 0; i < nodes; ++i) {
    if (cluster.node(i) == nullptr) continue;
    cluster.node(i)->check_invariants();
    for (const auto& peer : cluster.node(i)->protocol().peers()) {
      BOOST_TEST(peer.digest_equal);
      ++held;
    }
  }
  BOOST_TEST(held > nodes);
}

// Runs until all are complete, at most `limit` of virtual time.
inline void finish(sim::Cluster& cluster, Duration limit = 120s) {
  const TimePoint end = cluster.now() + limit;
  while (!cluster.all_complete() && cluster.now() < end) cluster.run_until(cluster.now() + 100ms);
  BOOST_REQUIRE_MESSAGE(cluster.all_complete(), "not complete after "
                                                    << to_seconds(cluster.now().time_since_epoch())
                                                    << " virtual seconds");
}

}  // namespace rumor::test
