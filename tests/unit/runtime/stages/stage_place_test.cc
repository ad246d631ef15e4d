// The place of a peer in a pipeline: the run of its stage, the id of the pipeline, and settings that no stage has.
#include "runtime/stages/stage_place.h"

#include <boost/test/unit_test.hpp>
#include <set>

#include "models/families/model.h"
#include "runtime/run/run_identity.h"

using namespace rumor;

namespace {

RunConfig cut_run(std::uint32_t stages) {
  RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  config.model.hidden = {48, 48};
  config.pipeline.stages = stages;
  return config;
}

RunId run_of(const RunConfig& config, const models::DataSet& data) {
  models::ModelConfig model = config.model;
  data.describe(model);
  return run_id(config, models::make_model(model).value()->layout());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(stage_place)

// So a join token for the run file is good for every stage.
BOOST_AUTO_TEST_CASE(the_pipeline_has_the_id_of_the_whole_run) {
  const RunConfig config = cut_run(3);
  const auto data = models::describe_data(config.data).value();
  std::set<RunId> runs{run_of(config, data)};
  std::uint32_t units = 0;
  for (std::uint32_t stage = 1; stage <= 3; ++stage) {
    const StagePlace place = StagePlace::create(config, data, stage).value();
    BOOST_TEST((RunId::from(place.pipeline.self.pipeline.view()) == run_of(config, data)));
    BOOST_TEST(place.pipeline.self.stage == stage);
    BOOST_TEST(place.pipeline.self.stages == 3u);
    BOOST_TEST(place.pipeline.micro_batches == config.pipeline.micro_batches);
    BOOST_TEST(place.config.model.units.begin == units);
    units = place.config.model.units.end;
    BOOST_TEST(runs.insert(run_of(place.config, data)).second);
  }
  BOOST_TEST(units == 3u);
}

// The exit belongs to its stage, and to the pipeline's identity.
BOOST_AUTO_TEST_CASE(stages_but_the_last_have_exits) {
  RunConfig config = cut_run(3);
  const auto data = models::describe_data(config.data).value();
  const auto without = StagePlace::create(config, data, 1).value();
  BOOST_TEST(!without.config.model.exit.is_on());
  config.pipeline.exits = {0.3, 0.5};
  std::set<std::string> pipelines{without.pipeline.self.pipeline.hex()};
  for (std::uint32_t stage = 1; stage <= 3; ++stage) {
    const StagePlace place = StagePlace::create(config, data, stage).value();
    BOOST_TEST(place.config.model.exit.stage == (stage < 3 ? stage : 0));
    BOOST_TEST(place.config.model.exit.weight == (stage == 1 ? 0.3 : stage == 2 ? 0.5 : 0));
    pipelines.insert(place.pipeline.self.pipeline.hex());
  }
  BOOST_TEST(pipelines.size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_a_stage_cannot_have_is_refused) {
  const auto data = models::describe_data(cut_run(2).data).value();
  const auto reason = [&](auto change) {
    RunConfig config = cut_run(2);
    change(config);
    const auto place = StagePlace::create(config, data, 1);
    return place ? "" : place.error().text;
  };
  const auto says = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  BOOST_TEST(reason([](RunConfig&) {}) == "");
  BOOST_TEST(says(reason([](RunConfig& c) { c.mode = "average"; }), "exchange.mode"));
  BOOST_TEST(says(reason([](RunConfig& c) { c.hogwild = 2; }), "optimizer.hogwild"));
  BOOST_TEST(says(reason([](RunConfig& c) { c.records = true; }), "audit.record"));
  BOOST_TEST(says(reason([](RunConfig& c) { c.weights = "file"; }), "model.weights"));
  BOOST_TEST(says(reason([](RunConfig& c) { c.pipeline.stages = 4; }), "pipeline.stages = 4"));
}

BOOST_AUTO_TEST_SUITE_END()
