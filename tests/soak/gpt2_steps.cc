// The first steps of GPT-2 124M on one row of tokens, for gpt2_steps.py, which takes them with PyTorch as well.
//
//   gpt2_steps CONTEXT STEPS THREADS
//
// Weights and tokens come from a formula that both sides compute: value i of the parameter vector from mix64(i), token
// i from mix64(2^40 + i). Each step is plain SGD of rate 0.1 on the same row. Prints a loss a line, then the memory: of
// the process, of four words a parameter (weights, gradient, and room for two more), and the rest: activations.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "models/families/model.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/prng.h"
#include "runtime/threads/thread_pool.h"

namespace {

using namespace rumor;
using namespace rumor::models;

// Uniform of the deviation that the tensor begins with; gains 1, biases 0.
void fill(const Model& model, LargeVector<float>& params) {
  for (const TensorInfo& tensor : model.layout().tensors()) {
    const TensorStart start = model.start_of(tensor);
    const bool is_residual = start.variance_under > 2500;
    const float size = is_residual ? 0.0070710678f : 0.034641016f;  // 0.02 * sqrt(3), and / sqrt(24)
    for (std::uint32_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      const auto drawn = static_cast<std::int32_t>(mix64(i) >> 40) - (1 << 23);
      if (start.kind == TensorStart::Kind::one) params[i] = 1;
      if (start.kind == TensorStart::Kind::normal) params[i] = static_cast<float>(drawn) * 0x1p-23f * size;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: gpt2_steps CONTEXT STEPS THREADS\n");
    return 2;
  }
  ModelConfig config;
  config.family = "gpt";
  config.vocabulary = 50'257;
  config.context = static_cast<std::uint32_t>(std::atoi(argv[1]));
  config.layers = config.heads = 12;
  config.embedding = 768;
  auto made = make_model(config);
  if (!made) {
    std::fprintf(stderr, "gpt2_steps: %s\n", made.error().text.c_str());
    return 2;
  }
  Model& model = **made;
  daemon::ThreadPool pool(static_cast<unsigned>(std::max(1, std::atoi(argv[3]))));
  model.set_parallel(&pool);
  LargeVector<float> params, gradient;
  params.assign(model.layout().params(), 0.0f);
  gradient.assign(params.size(), 0.0f);
  fill(model, params);
  std::vector<Token> tokens(config.context + 1);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<Token>(mix64((std::uint64_t{1} << 40) + i) % config.vocabulary);
  Batch batch;
  batch.tokens = tokens;
  batch.rows = 1;
  for (int step = 0; step < std::atoi(argv[2]); ++step) {
    std::printf("%.6f\n", static_cast<double>(model.loss_and_gradient(params, batch, gradient)));
    std::fflush(stdout);
    for (std::size_t i = 0; i < params.size(); ++i) params[i] -= 0.1f * gradient[i];
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double words = static_cast<double>(params.size()) * 4e-9;
  const double all = static_cast<double>(used.ru_maxrss) * 1024e-9;
  std::printf("memory: %.2f GB; %zu parameters, %.2f GB a word each; activations and scratch %.2f GB; "
              "with four words a parameter %.2f GB\n",
              all, params.size(), words, all - 2 * words, all + 2 * words);
}
