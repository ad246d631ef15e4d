// A model in stages, each with several whole nodes: equal replicas in every stage, and the loss of the whole
// model.
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/text.h"
#include "runtime/sim/experiments/compare.h"
#include "tests/sim/staged_support.h"

using namespace rumor;
using test::in_stages;
using test::staged;
using test::staged_gpt;
using test::staged_text;

BOOST_AUTO_TEST_CASE(stages_with_three_replicas_train_as_the_whole_model) {
  const RunConfig config = staged_gpt(12'000);
  auto whole = sim::Cluster::create(config, staged_text(), test::lan(3));
  BOOST_REQUIRE(whole.ok());
  const auto uncut = (*whole)->run(nullptr);
  BOOST_REQUIRE(uncut.ok());
  const sim::StagedResult result = staged(in_stages(config, 3, "f32"), test::lan(9));
  BOOST_TEST_MESSAGE("loss " << result.evaluation.loss << ", uncut " << uncut->loss << ", seconds "
                             << result.virtual_seconds << ", uncut " << uncut->virtual_seconds);
  BOOST_REQUIRE(result.stages.size() == 3u);
  for (const sim::StageResult& stage : result.stages) {
    BOOST_TEST_MESSAGE("units " << stage.units.begin << " to " << stage.units.end << ": utilisation "
                                << stage.utilisation << ", samples " << stage.run.samples);
    BOOST_TEST(stage.run.identical);
    BOOST_TEST(stage.run.lost == 0u);
    BOOST_TEST(stage.missing == 0u);
    BOOST_TEST(stage.run.samples + 3 * 16 >= config.samples);
    BOOST_TEST(stage.utilisation > 0.1);
  }
  BOOST_TEST(std::abs(result.evaluation.loss - uncut->loss) < 0.02 * uncut->loss);
  BOOST_TEST(result.figures.repeats == 0u);
}

// One seed, one trace; int8 borders are a quarter of f32 ones, and slower machines get less to do.
BOOST_AUTO_TEST_CASE(stages_repeat_themselves_with_narrow_borders_and_unequal_machines) {
  const RunConfig config = staged_gpt(4'000);
  sim::ClusterOptions options = test::lan(6);
  options.network = sim::NetworkModel::preset("wan").value();
  options.step_factors = {1, 1, 1, 4, 1, 3};
  const sim::StagedResult f32 = staged(in_stages(config, 2, "f32"), options);
  const sim::StagedResult int8 = staged(in_stages(config, 2, "int8"), options);
  const sim::StagedResult again = staged(in_stages(config, 2, "int8"), options);
  BOOST_TEST(int8.trace_hash == again.trace_hash);
  BOOST_TEST(int8.evaluation.loss == again.evaluation.loss);
  BOOST_TEST(int8.trace_hash != f32.trace_hash);
  BOOST_TEST(static_cast<double>(int8.gradient_bytes) < 0.27 * static_cast<double>(f32.gradient_bytes));
  BOOST_TEST(std::abs(int8.evaluation.loss - f32.evaluation.loss) < 0.05 * f32.evaluation.loss);
  for (const sim::StageResult& stage : int8.stages) BOOST_TEST(stage.run.identical);
}

// Exits are gossiped with their stages, and the joined model is evaluated without them.
BOOST_AUTO_TEST_CASE(stages_with_exits_train_and_stay_equal) {
  RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  config.model.hidden = {24, 16};
  config.samples = 12'000;
  config.pipeline.stages = 3;
  config.pipeline.exits = {0.5, 0.5};
  config.density = 0.02;
  auto run = sim::StagedRun::create(config, models::load_data(config.data).value(), test::lan(6));
  BOOST_REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : run.error().text));
  const auto result = (*run)->run(nullptr).value();
  for (const sim::StageResult& stage : result.stages) BOOST_TEST(stage.run.identical);
  BOOST_TEST(result.evaluation.accuracy.value() > 0.7);
}

// Three replicas of stage 2, which limits the pipeline, and among them a slow one: its share of the micro-batches, in
// successive windows, when it is new and as its speed changes.
BOOST_AUTO_TEST_CASE(replicas_get_micro_batches_by_their_measured_speed) {
  RunConfig config = in_stages(staged_gpt(4'000'000), 3, "f32");
  config.batch = config.pipeline.micro_batches = 32;
  sim::ClusterOptions options = test::lan(9);
  options.step = 100ms;
  options.curve_points = 1;
  options.step_factors = {1, 4, 1};
  options.planned_faults = sim::parse_fault_plan(
      "[[fault]]\nkind = \"kill\"\nat_s = 1\nlasts_s = 3\nnodes = [7]\n", "plan.toml", 9).value();
  auto run = sim::StagedRun::create(config, staged_text(), options);
  BOOST_REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : run.error().text));
  const auto done = [&](sim::HostId i) {
    return static_cast<double>((*run)->peers().node(i)->pipeline()->figures().counted);
  };
  const auto shares = [&](const char* title, std::size_t windows) {
    std::vector<double> all;
    std::string text;
    for (std::size_t w = 0; w < windows; ++w) {
      const double quick = done(1) + done(4), slow = done(7);
      (*run)->run_until((*run)->now() + 4s);
      all.push_back(2 * (done(7) - slow) / (done(1) + done(4) - quick));
      text += " " + fixed(all.back(), 2);
    }
    BOOST_TEST_MESSAGE(title << ":" << text);
    return all;
  };
  (*run)->run_until((*run)->now() + 6s);
  for (const double share : shares("alike, the third is new", 3)) BOOST_TEST((share > 0.8 && share < 1.2), share);
  (*run)->set_step_factor(7, 16);
  shares("becomes four times slower", 1);
  for (const double share : shares("four times slower", 4)) BOOST_TEST((share > 0.15 && share < 0.35), share);
  // A source shows it: the peers of stage 2 by their keys, the slow one with the longest pace.
  const StageStatus seen = (*run)->peers().node(0)->stage_status((*run)->now());
  BOOST_REQUIRE(seen.uppers.size() == 3u);
  const auto upper = [&](sim::HostId i) {
    const std::string key = (*run)->peers().node(i)->self().hex();
    return *std::find_if(seen.uppers.begin(), seen.uppers.end(), [&](const auto& one) { return one.node == key; });
  };
  BOOST_TEST(upper(7).pace_ms.value() > upper(1).pace_ms.value());
  BOOST_TEST(upper(7).answered < upper(1).answered);
  BOOST_TEST(seen.in_flight_wanted().value() > 1);
  BOOST_TEST(seen.waited_above > 0);
  BOOST_TEST((*run)->peers().node(2)->stage_status((*run)->now()).waited_below > 0);
  (*run)->set_step_factor(7, 4);
  shares("becomes quick", 1);
  for (const double share : shares("alike again", 2)) BOOST_TEST((share > 0.8 && share < 1.2), share);
}

BOOST_AUTO_TEST_CASE(the_stage_or_link_that_limits_a_pipeline_is_named) {
  RunConfig config = in_stages(staged_gpt(3'000), 3, "f32");
  config.batch = config.pipeline.micro_batches = 32;
  sim::ClusterOptions options = test::lan(3);
  options.step = 200ms;
  options.step_factors = {1, 1, 8};
  const sim::StagedResult slow = staged(config, options);
  const std::string text = sim::limit_text(slow);
  BOOST_TEST(text.starts_with("stage 3 limits training: it computes 9"), text);
  BOOST_TEST(text.ends_with("% for answers"), text);
  BOOST_TEST(slow.stages[2].utilisation > 0.9);
  BOOST_TEST(slow.bound.slowest == 2u);
  BOOST_TEST(!slow.bound.stages[2].is_link());
  BOOST_TEST(slow.rows_per_second() > 0.9 * slow.bound.rows_per_second);
  BOOST_TEST(slow.rows_per_second() < slow.bound.rows_per_second);
  // A network on which a micro-batch takes longer than its computation.
  options.step_factors = {};
  options.step = 50ms;
  const char* narrow_link = "latency_ms = [0.1, 0.2]\nup_mbit = 4\ndown_mbit = 4\n";
  options.network = sim::NetworkModel::parse(narrow_link, "narrow.toml").value();
  const sim::StagedResult narrow = staged(config, options);
  BOOST_TEST(sim::limit_text(narrow).starts_with("links limit training: the uplinks of stage 2 are full "),
             sim::limit_text(narrow));
  BOOST_TEST(narrow.bound.stages[narrow.bound.slowest].is_link());
  BOOST_TEST(narrow.rows_per_second() < narrow.bound.rows_per_second);
  BOOST_TEST(narrow.rows_per_second() > 0.6 * narrow.bound.rows_per_second);
  // The bytes of the bound are those of the frames without their heads.
  const double sent = static_cast<double>(slow.activation_bytes) / static_cast<double>(slow.stages[0].counted);
  const double expected =
      static_cast<double>(slow.bound.stages[0].costs.up_bytes + slow.bound.stages[1].costs.up_bytes);
  BOOST_TEST((sent > expected && sent < 1.1 * expected), sent << " " << expected);
}

// Beside the bound of processors and links; each step fills and empties the pipeline.
// tests/bench/bench_stages.cc has more of it.
BOOST_AUTO_TEST_CASE(rows_a_second_keep_their_share_of_what_processors_and_links_allow) {
  struct Setting {
    const char *network, *border;
    bool by_link;
    double least;  // of the bound
  };
  for (const Setting& setting : {Setting{"lan", "f32", false, 0.85}, Setting{"home", "f32", true, 0.4},
                                 Setting{"home", "int8", false, 0.35}, Setting{"wan", "int8", false, 0.3}}) {
    RunConfig config = in_stages(staged_gpt(6'144), 3, setting.border);
    config.pipeline.micro_batches = 32;
    config.batch = 32 * 16;  // 24 kB of f32 a micro-batch
    sim::ClusterOptions options = test::lan(6);
    options.network = sim::NetworkModel::preset(setting.network).value();
    options.step = 1200ms;
    options.curve_points = 1;
    const sim::StagedResult result = staged(config, options);
    const double reached = result.rows_per_second() / result.bound.rows_per_second;
    BOOST_TEST_MESSAGE(setting.network << ", " << setting.border << ": " << fixed(result.rows_per_second(), 0)
                                       << " rows a second, " << fixed(reached, 2) << " of the bound; "
                                       << sim::limit_text(result));
    BOOST_TEST(result.bound.stages[result.bound.slowest].is_link() == setting.by_link);
    BOOST_TEST((reached > setting.least && reached < 1), setting.network << " " << setting.border << " " << reached);
  }
}

// Four stages of one replica, an idle LAN, 16 micro-batches a step: nearly four times what one machine would train.
// Without overlap the bubble allows 0.84 of that. Forward passes that are made again cost a seventh of the speed.
BOOST_AUTO_TEST_CASE(stages_that_overlap_train_four_times_as_fast_as_one_machine) {
  const auto speed = [](bool overlap, bool recompute) {
    RunConfig config = in_stages(staged_gpt(16 * 20), 4, "f32");
    config.model.layers = 24;
    config.pipeline.micro_batches = config.batch = 16;
    config.pipeline.overlap = overlap;
    config.pipeline.recompute = recompute;
    sim::ClusterOptions options = test::lan(4);
    options.step = 1s;  // of the whole model
    options.curve_points = 1;
    return staged(config, options).rows_per_second() / (4 * 16);
  };
  const double together = speed(true, false), apart = speed(false, false), again = speed(false, true);
  BOOST_TEST_MESSAGE("of four times one machine: " << fixed(apart, 2) << ", with overlap " << fixed(together, 2)
                                                   << ", with forward passes made again " << fixed(again, 2));
  BOOST_TEST(together > 0.85);
  BOOST_TEST((apart > 0.7 && apart < 0.84));
  BOOST_TEST(again < apart - 0.05);
}

BOOST_AUTO_TEST_CASE(a_run_in_stages_has_curves_in_its_json_and_page) {
  sim::ClusterOptions options = test::lan(3);
  options.curve_points = 5;
  const sim::StagedResult result = staged(in_stages(staged_gpt(2'000), 3, "f32"), options);
  BOOST_TEST(result.curve.size() >= 5u);
  BOOST_TEST(result.curve.back().loss < result.curve.front().loss);
  for (std::size_t i = 1; i < result.curve.size(); ++i)
    BOOST_TEST(result.curve[i].virtual_seconds > result.curve[i - 1].virtual_seconds);
  const auto json = nlohmann::json::parse(sim::to_json(result));
  BOOST_TEST(json.at("curve").size() == result.curve.size());
  BOOST_TEST(json.at("curve").back().at("loss").get<double>() == result.evaluation.loss);
  BOOST_TEST(json.at("limit").get<std::string>() == sim::limit_text(result));
  BOOST_TEST(json.at("borders").size() == 2u);
  const std::string page = sim::to_html(result, "a <run>");
  for (const char* part : {"a &lt;run&gt; in 3 stages", "Loss against time", "Loss against bytes", "Time of a peer, %"})
    BOOST_TEST(page.find(part) != std::string::npos, part);
}

BOOST_AUTO_TEST_CASE(what_stages_do_not_have_is_refused_by_name) {
  const auto refusal = [](RunConfig config, sim::ClusterOptions options) {
    config.pipeline.stages = 3;
    return sim::StagedRun::create(config, staged_text(), options).error().text;
  };
  const RunConfig fine = staged_gpt(4'000);
  BOOST_TEST(refusal(fine, test::lan(2)).starts_with("pipeline.stages = 3: 2 nodes are too few"));
  RunConfig wrong = fine;
  wrong.mode = "average";
  BOOST_TEST(refusal(wrong, test::lan(3)).find("exchange.mode = \"average\"") != std::string::npos);
  wrong = fine;
  wrong.round_rules.local_steps = 4;
  BOOST_TEST(refusal(wrong, test::lan(3)).find("exchange.local_steps = 1") != std::string::npos);
  wrong = fine;
  wrong.records = true;
  BOOST_TEST(refusal(wrong, test::lan(3)).find("audit.record = false") != std::string::npos);
  wrong = fine;
  wrong.model.tied_head = true;
  BOOST_TEST(refusal(wrong, test::lan(3)).ends_with("set model.tied_head = false"));
  // A cluster of whole peers does not take a run file with stages.
  const auto cluster = sim::Cluster::create(in_stages(fine, 3, "f32"), staged_text(), test::lan(3));
  BOOST_TEST(cluster.error().text.find("a peer serves one stage of a model") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_pipeline_is_compared_with_the_whole_model) {
  const RunConfig base = in_stages(staged_gpt(2'000), 3, "f32");
  std::vector<sim::Method> methods;
  for (const char* text : {"broadcast", "pipeline", "pipeline:pipeline.border=int8"})
    methods.push_back(sim::parse_method(text, base, 6).value());
  BOOST_TEST(methods[0].config.pipeline.stages == 1u);
  BOOST_TEST(methods[1].config.pipeline.stages == 3u);
  const sim::RunTrial trial = [](const sim::Method& method, double rate, std::uint64_t seed) -> Result<sim::Trial> {
    RunConfig config = method.config;
    config.rate = rate;
    sim::ClusterOptions options = test::lan(method.nodes, seed);
    options.curve_points = 3;
    return sim::trial_of(sim::simulate(config, staged_text(), options, nullptr).value(), rate);
  };
  const auto compared = sim::compare(methods, {1.0}, 1, 1, trial);
  BOOST_REQUIRE_MESSAGE(compared.ok(), (compared.ok() ? "" : compared.error().text));
  const auto& all = compared->methods;
  for (const sim::MethodFigures& method : all) {
    BOOST_TEST(method.identical);
    BOOST_TEST(method.runs.front().params == all[0].runs.front().params);
    BOOST_TEST(method.runs.front().curve.size() >= 3u);
    BOOST_TEST(method.loss < method.runs.front().curve.front().loss);
    BOOST_TEST((method.idle > 0 && method.idle < 1));
  }
  BOOST_TEST(std::abs(all[2].loss - all[1].loss) < 0.1 * all[1].loss);
  BOOST_TEST(all[2].sent_bytes < 0.6 * all[1].sent_bytes);
  const auto says = [&](const char* text, const RunConfig& config) {
    return sim::parse_method(text, config, 6).error().text;
  };
  BOOST_TEST(says("pipeline", staged_gpt(100)).find("pipeline:pipeline.stages=3") != std::string::npos);
  BOOST_TEST(says("sync:pipeline.stages=2", base).find("for the method pipeline alone") != std::string::npos);
}
