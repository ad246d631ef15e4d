// Many peers that choose their stages, with random comings and goings in virtual time: every stage gets a peer again,
// nobody leaves a stage as its last peer, and moves are few.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <optional>

#include "runtime/base/prng.h"
#include "runtime/base/text.h"
#include "runtime/stages/stage_choice.h"

using namespace rumor;

namespace {

constexpr double tick = 0.25, move_takes = 4;

// In [0, 1).
double some_share(Prng& chance) { return static_cast<double>(chance.below(1000)) / 1000; }

struct Mover {
  NodeId node;
  std::uint32_t stage = 0;
  bool chooses = true;     // false: its stage is fixed
  double away_until = 0;   // while it moves
  std::optional<StageWatch> watch = {};
  double begun = 0;        // when its watch did
  std::optional<double> look_ends = {};  // a look takes a while; what it finds is of its end
};

class MovingPeers {
 public:
  MovingPeers(std::uint64_t seed, std::uint32_t stages, bool all_choose)
      : prng_(seed), stages_(stages), all_choose_(all_choose) {}

  void come() {
    Mover one;
    const std::uint64_t name = prng_.next();
    for (std::size_t byte = 0; byte < 8; ++byte) one.node.bytes[byte] = static_cast<std::uint8_t>(name >> (8 * byte));
    one.chooses = all_choose_ || prng_.below(3) > 0;
    one.stage = one.chooses ? choose_stage(one.node, stages_, present(one.node)).stage
                            : 1 + static_cast<std::uint32_t>(prng_.below(stages_));
    serve(one);
    peers_.push_back(std::move(one));
  }
  void go() {
    if (peers_.empty()) return;
    peers_.erase(peers_.begin() + static_cast<std::ptrdiff_t>(prng_.below(peers_.size())));
  }
  void go_all_of(std::uint32_t stage) {
    std::erase_if(peers_, [&](const Mover& one) { return one.stage == stage; });
  }
  void pass(double seconds) {
    for (const double end = now_ + seconds; now_ < end; now_ += tick) turn();
  }
  bool served() const {
    std::map<std::uint32_t, int> counts;
    for (const Mover& one : peers_) counts[one.stage] += one.away_until <= now_;
    for (std::uint32_t stage = 1; stage <= stages_; ++stage)
      if (counts[stage] == 0) return false;
    return true;
  }
  std::size_t size() const { return peers_.size(); }
  int moves() const { return moves_; }
  int empties() const { return empties_; }

 private:
  void serve(Mover& one) {
    one.watch.emplace(one.node, one.stage, stages_);
    one.begun = now_;
    one.look_ends.reset();
  }
  TimePoint time_of(const Mover& one) const { return TimePoint(from_seconds(now_ - one.begun)); }
  std::vector<StagePeer> present(const NodeId& but) const {
    std::vector<StagePeer> live;
    for (const Mover& one : peers_)
      if (one.node != but && one.away_until <= now_) live.push_back({one.node, one.stage});
    return live;
  }
  void turn() {
    const bool flows = served();
    if (was_served_ && !flows) ++empties_;
    was_served_ = flows;
    counted_ += flows;
    for (Mover& one : peers_) {
      if (!one.chooses || one.away_until > now_) continue;
      if (one.look_ends) {
        if (now_ >= *one.look_ends) end_look(one);
      } else if (one.watch->wants_look(time_of(one), counted_, true)) {
        one.look_ends = now_ + 2 * some_share(prng_);
      }
    }
  }
  void end_look(Mover& one) {
    one.look_ends.reset();
    const auto choice = one.watch->on_look(time_of(one), present(one.node));
    if (!choice) return;
    const auto others = present(one.node);
    BOOST_TEST(std::any_of(others.begin(), others.end(), [&](const auto& peer) { return peer.stage == one.stage; }));
    BOOST_TEST(std::none_of(others.begin(), others.end(),
                            [&](const auto& peer) { return peer.stage == choice->stage; }));
    ++moves_;
    one.stage = choice->stage;
    one.away_until = now_ + move_takes;
    serve(one);
  }

  Prng prng_;
  std::uint32_t stages_;
  bool all_choose_;
  std::vector<Mover> peers_;
  double now_ = 0;
  std::uint64_t counted_ = 0;
  int moves_ = 0, empties_ = 0;
  bool was_served_ = false;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(stage_moves)

// All start at once, so each chooses by its identity alone.
BOOST_AUTO_TEST_CASE(peers_that_start_together_soon_serve_all_stages) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    MovingPeers swarm(seed, 3, true);
    swarm.come();
    while (swarm.size() < 6) swarm.come();
    swarm.pass(15);
    BOOST_TEST(swarm.served(), str("seed ", seed));
    swarm.go_all_of(2);
    swarm.pass(20);
    BOOST_TEST(swarm.served(), str("seed ", seed, " after the loss of stage 2"));
    BOOST_TEST(swarm.moves() == 1, str("seed ", seed, ": ", swarm.moves(), " moves"));
  }
}

BOOST_AUTO_TEST_CASE(random_comings_and_goings_end_with_every_stage_served) {
  int moves = 0, empties = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const std::uint32_t stages = 2 + static_cast<std::uint32_t>(seed % 5);
    const bool all_choose = seed % 2 == 0;
    MovingPeers swarm(seed, stages, all_choose);
    Prng chance(1000 + seed);
    while (swarm.size() < 3 * stages) swarm.come();
    for (int event = 0; event < 60; ++event) {
      if (chance.below(8) == 0) swarm.go_all_of(1 + static_cast<std::uint32_t>(chance.below(stages)));
      else if (chance.below(2) == 0 || swarm.size() > 4 * stages) swarm.go();
      else swarm.come();
      swarm.pass(10 * some_share(chance));
    }
    // A newcomer takes an empty stage, so nobody comes: those that are there have to fill all.
    while (swarm.size() < 2 * stages) swarm.come();
    for (std::uint32_t stage = 2; stage <= stages; stage += 2) swarm.go_all_of(stage);
    const bool enough = all_choose && swarm.size() >= stages;
    const int before = swarm.moves();
    swarm.pass(20.0 * static_cast<double>(swarm.size()));
    if (enough) BOOST_TEST(swarm.served(), str("seed ", seed));
    BOOST_TEST(swarm.moves() - before <= static_cast<int>(stages), str("seed ", seed));
    const int rested = swarm.moves();
    swarm.pass(100);
    BOOST_TEST(swarm.moves() == rested, str("seed ", seed, " moves without an end"));
    moves += swarm.moves();
    empties += swarm.empties();
  }
  BOOST_TEST_MESSAGE(moves << " moves for " << empties << " times that stages stood empty");
  BOOST_TEST(empties > 100);
  BOOST_TEST(moves < empties);
}

BOOST_AUTO_TEST_SUITE_END()
