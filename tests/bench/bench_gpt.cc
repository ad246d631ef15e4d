// How fast a GPT trains: forward, backward and RMSprop of one step, on one thread and more.
//
//   bench_gpt [4x128|6x384] [THREADS]
//
// Prints for each: seconds a step (best of several), GFLOP/s by the count below, and loss and memory, so that
// it shows when something else was measured. tests/bench/gpt_torch.py does the same step with PyTorch.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/optimizer.h"
#include "runtime/daemon/thread_pool.h"
#include "tests/bench/measure.h"

namespace {

using namespace rumor;
using namespace rumor::models;

struct Size {
  const char* name;
  std::uint32_t layers, heads, embedding, context, rows;
};
constexpr Size sizes[] = {{"4x128", 4, 4, 128, 128, 16}, {"6x384", 6, 6, 384, 256, 8}};

// Of the products of one step: 6 a weight and token (the position table has none), and attention's two
// products forward and four back, half of each square. What is done again is not counted.
double operations(const Size& size) {
  const double d = size.embedding, tokens = static_cast<double>(size.rows) * size.context;
  const double weights = 12.0 * size.layers * d * d + 256 * d;
  return 6 * weights * tokens + 6 * size.layers * tokens * size.context * d;
}

void measure(const Size& size, unsigned threads) {
  ModelConfig config;
  config.family = "gpt";
  config.vocabulary = 256;
  config.context = size.context;
  config.layers = size.layers;
  config.heads = size.heads;
  config.embedding = size.embedding;
  const auto model = std::move(make_model(config)).value();
  daemon::ThreadPool pool(threads);
  model->set_parallel(threads > 1 ? &pool : nullptr);
  std::vector<float> params, gradient(model->layout().params()), delta(gradient.size());
  for (const std::int32_t w : initial_weights(*model, 1, 24))
    params.push_back(static_cast<float>(w) / (1 << 24));
  OptimizerConfig choice;
  choice.kind = "rmsprop";
  const auto optimizer = std::move(make_optimizer(choice, model->layout().params())).value();
  Prng prng(1);
  std::vector<std::uint16_t> tokens(std::size_t{size.rows} * (size.context + 1));
  for (std::uint16_t& token : tokens) token = static_cast<std::uint16_t>(prng.below(256));
  Batch batch;
  batch.tokens = tokens;
  batch.rows = size.rows;
  float loss = 0;
  const auto step = [&] {
    loss = model->loss_and_gradient(params, batch, gradient);
    optimizer->step(gradient, 1e-4, delta);
    for (std::size_t i = 0; i < params.size(); ++i) params[i] += delta[i];
  };
  step();
  const double seconds = bench::best_of(12, step);
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  std::printf("gpt %s  %u thread%s  %8.2f ms a step  %6.1f GFLOP/s  loss %.3f  %ld MiB\n", size.name, threads,
              threads == 1 ? " " : "s", seconds * 1e3, operations(size) / seconds * 1e-9,
              static_cast<double>(loss), used.ru_maxrss / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Size& size : sizes) {
    if (argc > 1 && std::string(argv[1]) != size.name) continue;
    for (const unsigned threads : {1u, 2u}) {
      if (argc > 2 && std::atoi(argv[2]) != static_cast<int>(threads)) continue;
      measure(size, threads);
    }
  }
}
