// A step of GPT-2 on one GPU and on all there are, each with as many rows as the one alone.
#include <numeric>

#include "gpu/models/split_model.h"
#include "models/families/gpt.h"
#include "tests/gpu/card/bench_model.h"
#include "tests/gpu/card/bench_support.h"

namespace rumor::gpu {
namespace {

struct Times {
  double step = 0, add_up = 0, follow = 0;
};

Result<Times> times_of(const GpuGroup& gpus, bool emulated) {
  const Gpu& gpu = gpus.first();
  const models::ModelConfig config = gpt2_config(emulated);
  SplitModel model = must(SplitModel::create(gpus, config, Precision::bf16));
  const std::uint32_t params = must(models::gpt_layout(config)).params();
  const DeviceArray<float> weights = noise(gpu, params, 0.02f), gradient = noise(gpu, params, 0);
  must(model.follow(weights));
  const auto rows = static_cast<std::uint32_t>((emulated ? 2 : 8) * gpus.size());
  std::vector<models::Token> tokens(std::size_t{rows} * (config.context + 1));
  Prng prng(2);
  for (models::Token& token : tokens) token = static_cast<models::Token>(prng.below(config.vocabulary));
  models::Batch batch;
  batch.rows = rows;
  batch.tokens = tokens;
  if (const Result<float> possible = model.loss_and_gradient(weights, batch, gradient); !possible)
    return possible.error();
  Times times;
  times.step = seconds_of(gpu, emulated, 3, [&] { must(model.loss_and_gradient(weights, batch, gradient)); });
  std::vector<DeviceArray<float>> others;
  std::vector<float*> values{gradient.data()};
  for (std::size_t d = 1; d < gpus.size(); ++d) {
    others.push_back(noise(gpus[d], params, 0));
    values.push_back(others.back().data());
  }
  times.add_up = seconds_of(gpu, emulated, 10, [&] { must(gpus.add_up(values, params)); });
  // As many places as eight updates of a thousandth have.
  std::vector<std::uint32_t> places(params / 125 + 1);
  for (std::uint32_t& place : places) place = static_cast<std::uint32_t>(prng.below(params));
  const auto place = must(DeviceArray<std::uint32_t>::create(gpu, places.size(), "places"));
  place.write(places.data(), places.size());
  times.follow = seconds_of(gpu, emulated, 10, [&] { must(model.follow_at(place, places.size(), weights)); });
  return times;
}

}  // namespace

std::string group_benchmarks(const GpuTable& table, bool emulated) {
  int count = 0;
  ErrorText error{};
  if (table.count(&count, &error) != Status::ok || count < 2) return "\"skipped: there is no second GPU\"";
  if (emulated) count = 2;
  std::vector<int> ordinals(static_cast<std::size_t>(count));
  std::iota(ordinals.begin(), ordinals.end(), 0);
  const auto all = GpuGroup::open(table, ordinals);
  if (!all) return "\"skipped: " + all.error().text + "\"";
  const auto alone = must(GpuGroup::open(table, std::vector<int>{0}));
  const Result<Times> one = times_of(*alone, emulated), together = times_of(**all, emulated);
  for (const Result<Times>* times : {&one, &together})
    if (!*times) return "\"skipped: " + times->error().text + "\"";
  char text[160];
  std::snprintf(text, sizeof text,
                "{\"gpus\": %d, \"step_alone_s\": %.6g, \"step_s\": %.6g, \"add_up_s\": %.6g, \"follow_s\": %.6g}",
                count, one->step, together->step, together->add_up, together->follow);
  return text;
}

}  // namespace rumor::gpu
