// A model in stages, each with several whole nodes: equal replicas in every stage, and the loss of the whole model.
#include "runtime/sim/stages/staged_run.h"

#include <cmath>

#include "tests/sim/support.h"
#include "tests/unit/models/scratch.h"

using namespace rumor;

namespace {

std::shared_ptr<const models::DataSet> text_data() {
  static const std::shared_ptr<const models::DataSet> data = [] {
    std::string text;
    Prng prng(3);
    for (int i = 0; i < 20'000; ++i)
      text.push_back(static_cast<char>(i % 7 == 0 ? 'p' + static_cast<int>(prng.below(4)) : 'a' + i % 7));
    const models::Scratch scratch;
    scratch.write("text", text);
    return models::load_data({.kind = "text", .path = scratch / "text"}, 16).value();
  }();
  return data;
}

RunConfig gpt_run(std::uint64_t samples) {
  RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  config.data.kind = "text";
  config.model.family = "gpt";
  config.model.context = 16;
  config.model.layers = 3;
  config.model.heads = 2;
  config.model.embedding = 24;
  config.model.tied_head = false;
  config.optimizer.kind = "adam";
  config.rate = 0.01;
  config.samples = samples;
  config.density = 0.05;
  config.batch = 16;
  return config;
}

sim::StagedResult staged(const RunConfig& config, const sim::StagedOptions& options) {
  auto run = sim::StagedRun::create(config, text_data(), options);
  BOOST_REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : run.error().text));
  auto result = (*run)->run();
  BOOST_REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text));
  return std::move(*result);
}

}  // namespace

BOOST_AUTO_TEST_CASE(stages_with_three_replicas_train_as_the_whole_model) {
  const RunConfig config = gpt_run(12'000);
  auto whole = sim::Cluster::create(config, text_data(), test::lan(3));
  BOOST_REQUIRE(whole.ok());
  const auto uncut = (*whole)->run(nullptr);
  BOOST_REQUIRE(uncut.ok());
  sim::StagedOptions options{.cluster = test::lan(9), .stages = 3};
  const sim::StagedResult result = staged(config, options);
  BOOST_TEST_MESSAGE("loss " << result.evaluation.loss << ", uncut " << uncut->loss << ", seconds "
                             << result.virtual_seconds << ", uncut " << uncut->virtual_seconds);
  BOOST_REQUIRE(result.stages.size() == 3u);
  for (const sim::StageResult& stage : result.stages) {
    BOOST_TEST_MESSAGE("units " << stage.units.begin << " to " << stage.units.end << ": utilisation "
                                << stage.utilisation << ", samples " << stage.run.samples);
    BOOST_TEST(stage.run.identical);
    BOOST_TEST(stage.run.lost == 0u);
    BOOST_TEST(stage.run.samples + 3 * 16 >= config.samples);
    BOOST_TEST(stage.utilisation > 0.1);
  }
  BOOST_TEST(std::abs(result.evaluation.loss - uncut->loss) < 0.02 * uncut->loss);
  BOOST_TEST(result.figures.repeats == 0u);
}
