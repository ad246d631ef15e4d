// Members of a pipeline whose stages are runs of their own: who is linked to whom through one seed, what crosses
// between stages, and who is turned away.
#include <boost/test/unit_test.hpp>

#include "tests/unit/gossip/world.h"

namespace rumor::gossip::test {

namespace {

struct HeardStage final : StageLinks {
  std::set<LinkId> links;
  std::size_t frames = 0;
  void linked(LinkId link) override { BOOST_TEST(links.insert(link).second); }
  void unlinked(LinkId link) override { BOOST_TEST(links.erase(link) == 1u); }
  void frame(LinkId link, const Frame& frame) override {
    BOOST_TEST(links.contains(link));
    frames += std::holds_alternative<Credit>(frame);
  }
};

// Node i serves stage i modulo the stages.
struct PipelineMembers {
  std::uint32_t stages;
  World world;
  std::map<std::size_t, HeardStage> heard;

  PipelineMembers(std::size_t nodes, std::uint32_t stages_in) : stages(stages_in), world(nodes) {
    for (std::size_t i = 0; i < nodes; ++i) place(i, 9);
  }
  void place(std::size_t i, std::uint8_t pipeline) {
    Stage stage{PipelineId{}, stage_of(i), stages, 0};
    stage.pipeline.bytes[0] = pipeline;
    world.stages[i] = {stage, &heard[i]};
  }
  std::uint32_t stage_of(std::size_t i) const { return static_cast<std::uint32_t>(i % stages) + 1; }
  void start(std::size_t i, std::vector<std::string> seeds) {
    world.start(i, std::move(seeds), run_named(static_cast<std::uint8_t>(stage_of(i))));
  }
  const Protocol& operator[](std::size_t i) const { return *world.nodes[i].protocol; }
  // Links to the stages below, of its own, and above.
  std::vector<std::size_t> linked(std::size_t i) const {
    const std::uint32_t stage = stage_of(i);
    return {(*this)[i].links_to_stage(stage - 1), (*this)[i].peers().size(), (*this)[i].links_to_stage(stage + 1)};
  }
};

using Counts = std::vector<std::size_t>;

}  // namespace

BOOST_AUTO_TEST_SUITE(stages)

// The seed is of stage 1, which is no neighbour of stages 3 and 4.
BOOST_AUTO_TEST_CASE(one_seed_of_any_stage_is_enough) {
  PipelineMembers all(8, 4);
  for (std::size_t i = 0; i < 8; ++i) all.start(i, {all.world.name(0)});
  all.world.run_for(10s);
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint32_t stage = all.stage_of(i);
    const Counts expected{stage > 1 ? 2u : 0u, 1u, stage < 4 ? 2u : 0u};
    BOOST_TEST(all.linked(i) == expected, boost::test_tools::per_element());
    BOOST_TEST(all.heard[i].links.size() == (stage == 1 || stage == 4 ? 2u : 4u));
    BOOST_TEST(all[i].members() == 2u);
    BOOST_TEST(all[i].known_addresses().size() == 7u);
    BOOST_TEST(all[i].ready_to_train());
    BOOST_TEST(all[i].waiting_for() == "");
  }
}

// Nobody has weights for it: it begins with the run's. A second one of the stage takes what the first has.
BOOST_AUTO_TEST_CASE(the_first_of_a_stage_need_not_wait) {
  PipelineMembers all(5, 3);
  all.start(0, {});
  all.world.run_for(1s);
  all.start(1, {all.world.name(0)});
  BOOST_TEST(all.world.run_while(3s, [&] { return all[1].ready_to_train(); }));
  all.world.publish(1);
  all.start(4, {all.world.name(0)});
  BOOST_TEST(all.world.run_while(3s, [&] { return all[4].ready_to_train(); }));
  BOOST_TEST((all.world.nodes[4].store->digest() == all.world.nodes[1].store->digest()));
  BOOST_TEST(all.world.nodes[4].store->digest().updates == 1u);
}

BOOST_AUTO_TEST_CASE(a_lost_neighbour_is_found_again) {
  PipelineMembers all(3, 3);
  for (std::size_t i = 0; i < 3; ++i) all.start(i, {all.world.name(0)});
  all.world.run_for(5s);
  all.world.kill(1);
  all.world.run_for(2s);
  for (const std::size_t i : {0u, 2u}) BOOST_TEST(all.heard[i].links.empty());
  all.heard[1].links.clear();
  all.start(1, {all.world.name(2)});
  all.world.run_for(5s);
  for (const std::size_t i : {0u, 2u}) BOOST_TEST(all.heard[i].links.size() == 1u);
  BOOST_TEST(all.heard[1].links.size() == 2u);
}

// Updates, digests and buffers stay within a stage; frames of the pipeline reach their receiver.
BOOST_AUTO_TEST_CASE(only_the_pipeline_speaks_between_stages) {
  PipelineMembers all(2, 2);
  for (std::size_t i = 0; i < 2; ++i) all.start(i, {all.world.name(0)});
  all.world.run_for(5s);
  all.world.publish(0);
  all.world.inject(1, 0, encode(Credit{3}));
  all.world.run_for(1s);
  BOOST_TEST(all.heard[0].frames == 1u);
  BOOST_TEST(all.world.nodes[1].store->digest().updates == 0u);
  BOOST_TEST(all[0].converged());  // no digest of another stage counts
  all.world.inject(1, 0, encode(Have{{{0, 1}}}));
  all.world.run_for(1s);
  BOOST_TEST(has_line(all.world.nodes[0].closes, "sent a frame of type 8, which has no place between these stages"));
  all.world.run_for(30s);
  BOOST_TEST(all.heard[0].links.empty());  // it is banned
}

BOOST_AUTO_TEST_CASE(other_pipelines_are_turned_away) {
  PipelineMembers all(2, 2);
  all.place(1, 8);
  for (std::size_t i = 0; i < 2; ++i) all.start(i, {all.world.name(0)});
  all.world.run_for(5s);
  BOOST_TEST(all.heard[0].links.empty());
  BOOST_TEST(all[1].refused_by_run() != "");
}

// The same rule as within a stage.
BOOST_AUTO_TEST_CASE(who_is_not_allowed_is_not_linked_to_any_stage) {
  PipelineMembers all(3, 3);
  for (const std::size_t i : {0u, 1u}) {
    all.world.rules[i].everyone = false;
    for (const std::size_t k : {0u, 1u}) all.world.rules[i].allowed.insert(all.world.nodes[k].id);
  }
  for (std::size_t i = 0; i < 3; ++i) all.start(i, {all.world.name(1)});
  all.world.run_for(5s);
  BOOST_TEST(all.heard[0].links.size() == 1u);
  BOOST_TEST(all.heard[1].links.size() == 1u);
  BOOST_TEST(all.heard[2].links.empty());
  BOOST_TEST(has_line(all.world.nodes[1].notes, "not admitted"));
}

// One word of the owner is good for all stages; the node it puts out is not linked by any that has it.
BOOST_AUTO_TEST_CASE(the_owner_puts_a_node_out_of_the_pipeline) {
  PipelineMembers all(4, 2);
  const NodeId owner = all.world.nodes[0].id;
  for (std::size_t i = 0; i < 4; ++i) all.world.rules[i].owner = owner;
  for (std::size_t i = 0; i < 4; ++i) all.start(i, {all.world.name(0)});
  all.world.run_for(5s);
  all.world.publish(3);
  all.world.run_for(1s);
  BOOST_TEST(all.world.nodes[1].store->digest().updates == 1u);
  Revocation word{all.world.nodes[3].id, {}, {1, seq_max}, {}};
  PipelineId pipeline;
  pipeline.bytes[0] = 9;
  word.signature = all.world.nodes[0].keys->sign(revoke_message(RunId::from(pipeline.view()), word));
  for (const std::size_t i : {0u, 1u}) BOOST_TEST(all.world.revoke(i, word).ok());
  all.world.run_for(5s);
  BOOST_TEST(all.world.nodes[1].store->digest().updates == 0u);
  for (const std::size_t i : {0u, 2u}) BOOST_TEST(all.heard[i].links.size() == 1u);  // to node 1
}

// With room for three, the others find neighbours elsewhere.
BOOST_AUTO_TEST_CASE(a_stage_takes_no_more_links_than_it_has_room_for) {
  PipelineMembers all(16, 2);
  all.world.stage_links = {2, 3};
  for (std::size_t i = 0; i < 16; ++i) all.start(i, {all.world.name(0)});
  all.world.run_for(20s);
  for (std::size_t i = 0; i < 16; ++i) {
    BOOST_TEST(all.heard[i].links.size() <= 3u);
    BOOST_TEST(all.heard[i].links.size() >= 1u);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::gossip::test
