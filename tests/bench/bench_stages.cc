// Rows a second of a pipeline of three stages in virtual time, beside the bound of processors and links alone
// (runtime/sim/stages/staged_bound.h): simulated networks with each kind of border numbers, and unequal replicas.
//
// usage: bench_stages [MICRO_BATCHES [SEED]]
#include <cstdio>
#include <cstdlib>

#include "runtime/base/text.h"
#include "runtime/sim/stages/staged_run.h"

using namespace rumor;

namespace {

constexpr std::size_t stages = 3, replicas = 3;
constexpr std::uint32_t rows = 8;  // of a micro-batch: 64 kB of f32 on a border

RunConfig small_gpt(std::uint32_t micro_batches) {
  RunConfig config = parse_run_config(preset_text("text-gpt"), "text-gpt").value();
  config.model.layers = 3;
  config.model.embedding = 64;
  config.model.heads = 2;
  config.model.context = 32;
  config.model.tied_head = false;
  config.round_rules.local_steps = 1;
  config.global_batch = 0;
  config.pipeline.micro_batches = micro_batches;
  config.batch = rows * micro_batches;
  config.pipeline.stages = stages;
  config.samples = std::uint64_t{6} * replicas * config.batch;
  return config;
}

void measure(const RunConfig& config, const std::shared_ptr<const models::DataSet>& data,
             const sim::ClusterOptions& options, const std::string& title) {
  auto run = sim::StagedRun::create(config, data, options);
  const auto result = run ? (*run)->run(nullptr) : Result<sim::StagedResult>(run.error());
  if (!result) {
    std::fprintf(stderr, "%s: %s\n", title.c_str(), result.error().text.c_str());
    std::exit(1);
  }
  const sim::StagedBound& bound = result->bound;
  std::string busy;
  for (const sim::StageResult& stage : result->stages) busy += " " + fixed(stage.utilisation, 2);
  std::printf("%-28s %8.1f %8.1f %6.2f  %-10s %s\n", title.c_str(), result->rows_per_second(), bound.rows_per_second,
              result->rows_per_second() / bound.rows_per_second,
              str(bound.stages[bound.slowest].is_link() ? "links" : "processor", " ", bound.slowest + 1).c_str(),
              busy.c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const auto micro_batches = static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 32);
  RunConfig config = small_gpt(micro_batches);
  const auto data = models::load_data(config.data, config.model.context);
  if (!data) {
    std::fprintf(stderr, "%s\n", data.error().text.c_str());
    return 1;
  }
  sim::ClusterOptions options;
  options.nodes = stages * replicas;
  options.curve_points = 1;
  if (argc > 2) options.seed = std::strtoull(argv[2], nullptr, 10);
  options.step = from_seconds(0.06 * micro_batches);  // 20 ms a micro-batch in each of three equal stages
  std::printf("%u micro-batches of %u rows, %zu replicas a stage\n%-28s %8s %8s %6s  %-10s %s\n", micro_batches, rows,
              replicas, "network, border", "rows/s", "bound", "of it", "bound by", "utilisation of the stages");
  for (const char* network : {"lan", "home", "wan"})
    for (const char* border : {"f32", "bf16", "int8"}) {
      options.network = sim::NetworkModel::preset(network).value();
      config.pipeline.border = border;
      measure(config, *data, options, str(network, ", ", border));
    }
  options.network = sim::NetworkModel::preset("lan").value();
  config.pipeline.border = "f32";
  config.samples *= 4;  // the last steps of slow sources take long
  options.step_factors = {1, 1, 1, 1, 1, 1, 1, 4, 1};
  measure(config, *data, options, "lan, stage 2: 1, 1, 4");
  options.step_factors = {1, 1, 1, 2, 2, 2, 4, 4, 4};
  measure(config, *data, options, "lan, all stages: 1, 2, 4");
  options.step_factors = {1, 2, 4, 2, 4, 1, 4, 1, 2};
  measure(config, *data, options, "lan, the same, mixed");
}
