// `rumor doctor` says what the borders of a run ask of a link, and whether the links of a peer are short enough.
#include "tools/commands/doctor_stages.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/unit/contains.h"

namespace rumor::tools {
namespace {

using rumor::test::contains;

// An MLP of three layers on the 20 inputs of synthetic data; borders of 24 and 16 floats.
RunConfig cut_run() {
  RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  config.model.hidden = {24, 16};
  config.pipeline.stages = 3;
  config.batch = 32;
  return config;
}

std::string borders_of(const RunConfig& config) {
  Findings out;
  check_borders(out, config, *models::load_data(config.data).value());
  return out.text();
}

std::string stage_of(const std::optional<double>& wanted) {
  nlohmann::json status = {{"run_id", "x"}, {"node_id", "x"}, {"stage", nlohmann::json::object()}};
  if (wanted) status["stage"]["in_flight_wanted"] = *wanted;
  Findings out;
  check_stage(out, PeerReport::parse(status.dump(), "127.0.0.1:1").value());
  return out.text();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(doctor_stages)

BOOST_AUTO_TEST_CASE(each_border_has_its_bytes_and_its_rows_a_second) {
  RunConfig config = cut_run();
  // Eight rows of a byte of label and 24 floats up; 24 floats down.
  std::string text = borders_of(config);
  BOOST_TEST(contains(text, "ok    border 1-2   776 B up and 768 B down a micro-batch (f32); at 100 Mbit/s "), text);
  BOOST_TEST(contains(text, "ok    border 2-3   520 B up and 512 B down a micro-batch (f32)"), text);
  BOOST_TEST(contains(text, "0.1 ms up, 128866 rows a second"), text);
  config.pipeline.border = "bf16";
  config.up_mbit = 0.003;
  text = borders_of(config);
  BOOST_TEST(contains(text, "warn  border 1-2   392 B up and 384 B down a micro-batch (bf16); at 0.003 Mbit/s"), text);
  BOOST_TEST(contains(text, "fix: pipeline.border = \"int8\""), text);
}

BOOST_AUTO_TEST_CASE(a_model_that_is_not_cut_has_no_borders) {
  RunConfig config = cut_run();
  config.pipeline.stages = 1;
  BOOST_TEST(borders_of(config) == Findings().text());
}

BOOST_AUTO_TEST_CASE(a_cut_that_does_not_fit_is_named) {
  RunConfig config = cut_run();
  config.pipeline.stages = 4;
  BOOST_TEST(contains(borders_of(config), "BAD   pipeline     "));
}

BOOST_AUTO_TEST_CASE(a_long_round_trip_wants_more_in_flight_than_a_peer_may_have) {
  BOOST_TEST(stage_of({}) == Findings().text());
  BOOST_TEST(contains(stage_of(2.5), "ok    pipeline     links to the stage above want 2.5 micro-batches in flight"));
  BOOST_TEST(contains(stage_of(9), "warn  pipeline     links to the stage above want 9.0 micro-batches in flight"));
  BOOST_TEST(contains(stage_of(9), "fix: larger micro-batches"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::tools
