// Peers that others cannot dial, as at home: all updates arrive, and as soon as if they could be dialled
// (PROTOCOL.md 11).
#include "runtime/sim/world/spreading.h"
#include "tests/sim/support.h"

using namespace rumor;

namespace {

sim::SpreadingResult spread(double undiallable) {
  sim::SpreadingOptions options;
  options.nodes = 16;  // more than each is linked to
  options.payload_bytes = 20'000;
  options.load = 0.1;
  options.network = *sim::NetworkModel::preset("wan");
  options.undiallable = undiallable;
  return sim::run_spreading(options);
}

}  // namespace

BOOST_AUTO_TEST_CASE(half_of_the_peers_may_be_undiallable) {
  const sim::SpreadingResult all = spread(0), half = spread(0.5);
  for (const sim::SpreadingResult* one : {&all, &half}) {
    BOOST_TEST(one->missing == 0u);
    BOOST_TEST(one->links_least >= 4);
    BOOST_TEST(one->copies < 1.01);
  }
  BOOST_TEST(half.links_mean < all.links_mean);  // those at home have nobody to be linked to but those that are not
  BOOST_TEST(half.p99 < 2 * all.p99 + 0.2);
}
