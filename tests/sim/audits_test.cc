// Peers that audit each other while they train: honest ones agree, cheats are put out by proofs that all others check.
#include "gossip/contract/stream_name.h"
#include "tests/sim/support.h"

using namespace rumor;

BOOST_AUTO_TEST_SUITE(audits_by_peers)

namespace {

RunConfig audited(std::uint64_t samples, double share = 0.05) {
  RunConfig config = test::small_run(samples);
  config.records = true;
  config.segment = 8;
  config.audit_share = share;
  return config;
}

AuditCounts counts_of(const sim::Cluster& cluster, std::size_t nodes) {
  AuditCounts all;
  for (std::size_t i = 0; i < nodes; ++i) {
    if (cluster.node(i) == nullptr) continue;
    for (const auto& [node, counts] : cluster.node(i)->audits()) {
      all.agreed += counts.agreed;
      all.differ += counts.differ;
      all.cannot_tell += counts.cannot_tell;
    }
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(honest_peers_spend_their_share_and_agree) {
  const RunConfig config = audited(60'000);
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
  BOOST_TEST(share > 0.03);
  BOOST_TEST(share < 0.08);
}

BOOST_AUTO_TEST_SUITE_END()
