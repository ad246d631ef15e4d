// Times what an optimizer costs beside the gradient of a GPT: Muon and AdamW, as shares of a whole step. One thread.
//
// usage: bench_muon [ROWS [LAYERS [EMBEDDING]]]   default 4 4 128, the shape and batch of the preset text-gpt
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "models/families/model.h"
#include "models/optimizers/hidden_matrices.h"
#include "models/optimizers/optimizer.h"
#include "tests/bench/measure.h"

using namespace rumor;
using namespace rumor::models;

namespace {

std::uint32_t number(int argc, char** argv, int at, std::uint32_t otherwise) {
  return argc > at ? static_cast<std::uint32_t>(std::strtoul(argv[at], nullptr, 10)) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int rounds = 15;
  const std::uint32_t rows = number(argc, argv, 1, 4);
  ModelConfig config;
  config.family = "gpt";
  config.vocabulary = 256;
  config.layers = number(argc, argv, 2, 4);
  config.embedding = number(argc, argv, 3, 128);
  if (rows == 0 || config.layers == 0 || config.embedding == 0 || config.embedding % config.heads != 0) {
    std::fprintf(stderr, "usage: bench_muon [ROWS [LAYERS [EMBEDDING]]]   embedding: a multiple of %u\n", config.heads);
    return 2;
  }
  const auto model = std::move(make_model(config)).value();
  const std::uint32_t params = model->layout().params();
  std::vector<Token> tokens(rows * (config.context + 1));
  Prng prng(1);
  for (Token& token : tokens) token = static_cast<Token>(prng.below(config.vocabulary));
  Batch batch;
  batch.rows = rows;
  batch.tokens = tokens;
  const std::vector<float> weights = to_floats(initial_weights(*model, 1, 24), 24);
  std::vector<float> gradient(params), delta(params);
  const double pass = bench::best_of(rounds, [&] { model->loss_and_gradient(weights, batch, gradient); });
  std::printf("%u parameters, %u rows of %u tokens: gradient %.2f ms\n", params, rows, config.context, pass * 1e3);
  for (const char* kind : {"adamw", "muon"}) {
    const auto optimizer = std::move(make_optimizer({.kind = kind}, params, hidden_matrices(*model))).value();
    const double step = bench::best_of(rounds, [&] { optimizer->step(gradient, 0.01, delta, weights); });
    std::printf("%-6s %8.2f ms, %4.1f %% of a step\n", kind, step * 1e3, 100 * step / (step + pass));
  }
  return delta[0] == 0;  // the work is not optimised away
}
