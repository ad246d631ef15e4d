// Random faults drawn from a seed: links cut, nodes killed with and without their store, partitions, stuck links. Then
// all is healed, and everybody must have every update exactly once. A failure names its seed.
#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "tests/shortened.h"
#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

namespace {

constexpr Duration chaos = 20s;

class Swarm {
 public:
  explicit Swarm(std::uint64_t seed) : prng_(Prng::named(seed, "swarm")), world(2 + prng_.below(8), seed) {
    world.delay_us_max = 1 + prng_.below(60'000);
    const std::size_t contacts = std::min<std::size_t>(world.nodes.size(), 2);
    for (std::size_t i = 0; i < contacts; ++i) seeds_.push_back(world.name(i));
    for (std::size_t i = 0; i < world.nodes.size(); ++i) {
      world.nodes[i].store->snapshot_padding = prng_.below(700'000);
      later(2s, [this, i] { world.start(i, seeds_); });
    }
    world.run_for(3s);
    const int rate = static_cast<int>(1 + prng_.below(20));
    world.publish_all(chaos, rate, 20 + prng_.below(2000));
    const std::uint64_t faults = 2 + prng_.below(8);
    for (std::uint64_t i = 0; i < faults; ++i) plan_fault();
  }

  // The last faults end 8 s after the chaos.
  void heal() {
    world.run_for(chaos + 10s);
    world.heal();
    for (std::size_t i = 0; i < world.nodes.size(); ++i) {
      if (!world.nodes[i].up()) world.start(i, seeds_);
    }
  }

 private:
  template <class Act>
  void later(Duration within, Act act) {
    world.at(world.now + Duration(static_cast<std::int64_t>(prng_.below(static_cast<std::uint64_t>(within.count())))),
             std::move(act));
  }

  void plan_fault() {
    const std::size_t node = prng_.below(world.nodes.size()), other = prng_.below(world.nodes.size());
    switch (prng_.below(5)) {
      case 0: return later(chaos, [this] { world.cut_random_link(); });
      case 1: return later(chaos, [this, node] { kill_for_a_while(node, false); });
      case 2: return later(chaos, [this, node] { kill_for_a_while(node, true); });
      case 3: return later(chaos, [this, node, other] {
        world.set_backlog(node, other, true);
        later(3s, [this, node, other] { world.set_backlog(node, other, false); });
      });
      default: return later(chaos, [this] {
        std::set<std::size_t> side;
        for (std::size_t i = 0; i < world.nodes.size(); ++i) {
          if (prng_.chance(1, 2)) side.insert(i);
        }
        world.partition(side);
        later(8s, [this] { world.heal(); });
      });
    }
  }

  void kill_for_a_while(std::size_t i, bool with_store) {
    if (!world.nodes[i].up()) return;
    // An update that no other node has would be lost for good with the store; that is no fault of the protocol.
    const HaveSet& held = world.nodes[i].store->have();
    const bool spare = std::any_of(world.nodes.begin(), world.nodes.end(), [&](const WorldNode& other) {
      return &other != &world.nodes[i] && other.up() && other.store->have().includes(held);
    });
    if (with_store && !spare) return;
    world.kill(i);
    if (with_store) world.nodes[i].store = std::make_unique<FakeStore>();
    later(8s, [this, i] {
      if (!world.nodes[i].up()) world.start(i, seeds_);
    });
  }

  Prng prng_;
  std::vector<std::string> seeds_;

 public:
  World world;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(swarm)

BOOST_AUTO_TEST_CASE(nothing_is_lost_or_doubled_whatever_happens) {
  for (std::uint64_t seed = 1; seed <= rumor::test::shortened(12); ++seed) {
    BOOST_TEST_CONTEXT("seed " << seed) {
      Swarm swarm(seed);
      World& world = swarm.world;
      swarm.heal();
      BOOST_TEST(world.run_while(60s, [&] { return world.all_equal(); }));
      std::uint64_t made = 0;
      for (const auto& [stream, count] : world.made) made += count;
      BOOST_TEST(world.nodes[0].store->have().count() == made);
      for (const WorldNode& node : world.nodes) BOOST_TEST(node.protocol->divergence().empty());
      const Counters all = world.totals();
      BOOST_TEST(all.updates_invalid == 0u);
      BOOST_TEST(all.updates_lost == 0u);
      BOOST_TEST(static_cast<double>(all.updates_duplicate) <= 0.1 * static_cast<double>(all.updates_received));
      world.finish_all();
      BOOST_TEST(world.run_while(3s, [&] { return world.all_converged(); }));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
