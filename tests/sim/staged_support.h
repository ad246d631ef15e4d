// A small language model in stages, for simulations: three layers, whole nodes, milliseconds of real time.
#pragma once

#include "runtime/sim/stages/staged_run.h"
#include "tests/sim/support.h"
#include "tests/unit/models/scratch.h"

namespace rumor::test {

inline std::shared_ptr<const models::DataSet> staged_text() {
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

inline RunConfig staged_gpt(std::uint64_t samples) {
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

inline RunConfig in_stages(RunConfig config, std::uint32_t stages, const std::string& border) {
  config.pipeline.stages = stages;
  config.pipeline.border = border;
  return config;
}

inline sim::StagedResult staged(const RunConfig& config, const sim::ClusterOptions& options) {
  auto run = sim::StagedRun::create(config, staged_text(), options);
  BOOST_REQUIRE_MESSAGE(run.ok(), (run.ok() ? "" : run.error().text));
  auto result = (*run)->run(nullptr);
  BOOST_REQUIRE_MESSAGE(result.ok(), (result.ok() ? "" : result.error().text));
  return std::move(*result);
}

}  // namespace rumor::test
