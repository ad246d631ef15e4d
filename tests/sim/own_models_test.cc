// Peers with models of their own in the simulator: their graph and their copies.
#include <set>

#include "runtime/sim/methods/neighbour_graph.h"
#include "runtime/sim/methods/public_copies.h"
#include "tests/sim/support.h"

using namespace rumor;

namespace {

// Symmetric; connected as far as peers have neighbours; returns how many that are.
std::size_t check_graph(const std::vector<std::vector<std::size_t>>& neighbours, std::size_t degree) {
  std::size_t here = 0;
  std::set<std::size_t> reached;
  std::vector<std::size_t> next;
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    BOOST_TEST(neighbours[i].size() <= degree);
    if (neighbours[i].empty()) continue;
    ++here;
    if (reached.empty()) {
      reached.insert(i);
      next.push_back(i);
    }
    for (const std::size_t j : neighbours[i])
      BOOST_TEST(std::count(neighbours[j].begin(), neighbours[j].end(), i) == 1);
  }
  while (!next.empty()) {
    const std::size_t i = next.back();
    next.pop_back();
    for (const std::size_t j : neighbours[i])
      if (reached.insert(j).second) next.push_back(j);
  }
  BOOST_TEST(reached.size() == here);
  return here;
}

double mean_degree(const std::vector<std::vector<std::size_t>>& neighbours) {
  double links = 0, here = 0;
  for (const auto& list : neighbours) {
    links += static_cast<double>(list.size());
    here += list.empty() ? 0 : 1;
  }
  return links / here;
}

// Three peers in a line, 0 - 1 - 2, over four parameters, on a network of equal latency.
struct Line {
  static sim::ClusterOptions options_of() {
    sim::ClusterOptions options = test::lan(3);
    options.network.latency_min = options.network.latency_max = 10ms;
    options.network.jitter = Duration{0};
    return options;
  }
  static RunConfig config_of() {
    RunConfig config = test::small_run();
    config.emit = compress::Emit::mean;
    return config;
  }

  RunConfig config = config_of();
  sim::ClusterOptions options = options_of();
  ParamLayout layout = ParamLayout::create({{"w", {4}, 0, 4}}).value();
  sim::Learners learners = sim::Learners::create(config, test::small_data(), options).value();
  sim::Absences absences = sim::Absences::create(options, config.mode).value();
  sim::Progress silent;
  sim::MethodRecord record{sim::MethodSetting{config, options, learners, absences, silent}};
  std::vector<float> start = {0, 0, 0, 0};
  std::vector<std::vector<std::size_t>> heard = {{1}, {0, 2}, {1}};
  sim::PublicCopies copies{config, options, layout, start, heard, record};
};

void require_equal(std::span<const float> got, const std::vector<float>& want) {
  BOOST_TEST(std::vector<float>(got.begin(), got.end()) == want, boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(own_models)

// By hand: density 1/2 of four takes the two largest differences, each worth their mean magnitude.
BOOST_AUTO_TEST_CASE(what_three_peers_in_a_line_hear_of_each_other) {
  Line line;
  sim::PublicCopies& copies = line.copies;
  const std::vector<float> x0 = {1, 0.25f, -0.5f, 0}, x1 = {0, 0, 0, 0}, x2 = {0, 0, 0, 2};
  BOOST_REQUIRE(copies.tell(0, x0, 0.5, TimePoint{}).ok());
  BOOST_REQUIRE(copies.tell(1, x1, 0.5, TimePoint{}).ok());  // nothing to say: an update without entries
  BOOST_REQUIRE(copies.tell(2, x2, 0.25, TimePoint{}).ok());
  require_equal(copies.own(0), {0.75f, 0, -0.75f, 0});
  require_equal(copies.own(2), {0, 0, 0, 2});

  copies.hear(1, TimePoint{9ms});
  require_equal(copies.held(1)[0].weights, {0, 0, 0, 0});  // still on its way
  copies.hear(1, TimePoint{11ms});
  require_equal(copies.held(1)[0].weights, {0.75f, 0, -0.75f, 0});
  require_equal(copies.held(1)[1].weights, {0, 0, 0, 2});


  // What was left out of the first message is in the second: 0.25, 0.25 and 0.25.
  BOOST_REQUIRE(copies.tell(0, x0, 0.75, TimePoint{20ms}).ok());
  require_equal(copies.own(0), x0);
  copies.hear(1, TimePoint{40ms});
  require_equal(copies.held(1)[0].weights, x0);
}

BOOST_AUTO_TEST_CASE(a_new_link_begins_with_the_whole_copy_and_an_old_message_does_not_count) {
  Line line;
  sim::PublicCopies& copies = line.copies;
  const std::vector<float> x0 = {1, 0, 0, 0}, later = {3, 0, 0, 0};
  BOOST_REQUIRE(copies.tell(0, x0, 0.25, TimePoint{}).ok());
  copies.connect({{2}, {2}, {0, 1}}, TimePoint{1ms});  // 0 - 2 - 1
  copies.connect(line.heard, TimePoint{2ms});          // and back, while all is on its way
  BOOST_REQUIRE(copies.tell(0, later, 0.25, TimePoint{3ms}).ok());
  copies.hear(1, TimePoint{11ms});  // the first message, of a link that is gone
  BOOST_REQUIRE(copies.held(1).size() == 1u);
  BOOST_TEST(copies.held(1)[0].of == 2u);
  copies.hear(1, TimePoint{20ms});  // the whole copy, then the second message
  require_equal(copies.held(1)[0].weights, later);

  copies.forget(2);
  copies.connect({{1}, {0}, {}}, TimePoint{30ms});
  BOOST_TEST(copies.held(2).empty());
  copies.connect(line.heard, TimePoint{40ms});
  copies.hear(2, TimePoint{60ms});
  require_equal(copies.held(2)[0].weights, {0, 0, 0, 0});
  copies.adopt(2, later, TimePoint{60ms});
  copies.hear(1, TimePoint{80ms});
  require_equal(copies.held(1)[1].weights, later);
}

BOOST_AUTO_TEST_CASE(the_graph_stays_connected_and_even_while_peers_come_and_go) {
  sim::NeighbourGraph graph(40, 4, 7);
  BOOST_TEST(check_graph(graph.neighbours(), 4) == 40u);
  BOOST_TEST(mean_degree(graph.neighbours()) > 3.8);
  Prng draw = Prng::named(7, "churn");
  std::set<std::size_t> away;
  for (int turn = 0; turn < 500; ++turn) {
    const auto i = static_cast<std::size_t>(draw.below(40));
    if (away.erase(i) > 0) {
      graph.join(i);
      BOOST_TEST(!graph.neighbours()[i].empty());
    } else if (away.size() < 30) {
      away.insert(i);
      graph.leave(i);
      BOOST_TEST(graph.neighbours()[i].empty());
    }
    BOOST_TEST_REQUIRE(check_graph(graph.neighbours(), 4) == 40 - away.size());
    BOOST_TEST(mean_degree(graph.neighbours()) > 3);
  }
  BOOST_TEST(mean_degree(sim::NeighbourGraph(3, 8, 1).neighbours()) == 2);
  BOOST_TEST(sim::NeighbourGraph(1, 4, 1).neighbours()[0].empty());
}

BOOST_AUTO_TEST_SUITE_END()
