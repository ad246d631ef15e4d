// Times what a root of the trainer's state costs at the start of a segment (runtime/AUDIT.md, "Segments"): to copy the
// state and to hash it, beside a mini-batch of the same trainer. One thread, the preset text-gpt on random bytes.
//
// usage: bench_audit
#include <cstdio>
#include <memory>
#include <vector>

#include "gossip/contract/state_pieces.h"
#include "runtime/run/run_config.h"
#include "runtime/training/model_trainer.h"
#include "tests/bench/measure.h"

using namespace rumor;

namespace {

std::shared_ptr<const models::DataSet> random_text(std::uint32_t context) {
  models::DataSet data;
  data.name = "random";
  data.vocabulary = 256;
  data.context = context;
  const auto bytes = std::make_shared<Bytes>(1 << 16);
  Prng prng(1);
  for (std::uint8_t& byte : *bytes) byte = static_cast<std::uint8_t>(prng.next());
  data.train_tokens.append(bytes, *bytes, models::TokenArray::Width::byte);
  return std::make_shared<const models::DataSet>(std::move(data));
}

}  // namespace

int main() {
  constexpr int rounds = 15;
  const RunConfig config = parse_run_config(preset_text("text-gpt"), "text-gpt").value();
  const auto trainer = ModelTrainer::create(config, random_text(config.model.context), {}, 1).value();
  trainer->refresh(trainer->initial_weights());
  std::uint64_t period = 0;
  const double step = bench::best_of(rounds, [&] {
    (void)trainer->step({.rate = 0.001, .density = config.density, .period = ++period, .batches = 1});
  });
  Bytes state;
  const double copy = bench::best_of(rounds, [&] { state = trainer->carried_state(); });
  const double megabytes = static_cast<double>(state.size()) / 1e6;
  std::vector<Bytes> states(rounds, state);
  const double hash = bench::best_of(rounds, [&] {
    (void)gossip::keep_state(std::move(states.back()));
    states.pop_back();
  });
  std::printf("%u parameters, %.1f MB of state: mini-batch %.1f ms, copy %.1f ms, hash %.1f ms\n",
              trainer->layout().params(), megabytes, step * 1e3, copy * 1e3, hash * 1e3);
  for (const int batches : {1, 4, 16}) {
    const double training = step * batches * config.segment;
    std::printf("%2d mini-batches an update: %.2f %% of the training\n", batches,
                100 * (copy + hash) / (training + copy + hash));
  }
  return 0;
}
