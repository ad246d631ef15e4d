// How fast a training step is: MLP 784-128-128-10, forward and backward, every kernel variant, a few batch
// sizes.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "models/families/model.h"
#include "models/kernels/kernels.h"
#include "runtime/base/kernel_choice.h"
#include "runtime/base/prng.h"

namespace {

using namespace rumor;
using namespace rumor::models;

// Best of a few short rounds: on a shared machine the minimum says most about the code.
double best_step_seconds(Model& model, const std::vector<float>& params, const Batch& batch) {
  std::vector<float> gradient(params.size());
  double best = 1e9;
  for (int round = 0; round < 10; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    int steps = 0;
    double seconds = 0;
    for (; seconds < 0.02; ++steps) {
      model.loss_and_gradient(params, batch, gradient);
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    best = std::min(best, seconds / steps);
  }
  return best;
}

}  // namespace

int main() {
  ModelConfig config;
  config.inputs = 784;
  config.classes = 10;
  const auto model = std::move(make_model(config)).value();
  std::vector<float> params;
  for (const std::int32_t w : initial_weights(model->layout(), 1, 24))
    params.push_back(static_cast<float>(w) / (1 << 24));
  const double inner_weights = 128 * 128 + 128 * 10, weights = 784 * 128 + inner_weights;
  for (const KernelTable* table : kernel_variants()) {
    if (!choose_kernels(table->name)) return 1;
    for (const std::uint32_t rows : {1u, 16u, 64u, 256u}) {
      Prng prng(rows);
      std::vector<float> x(std::size_t{rows} * 784);
      for (float& value : x) value = static_cast<float>(prng.between(-1000, 1000)) / 1000;
      const std::vector<std::uint8_t> label(rows, 3);
      const double seconds = best_step_seconds(*model, params, {x, label, rows});
      const double operations = rows * (4 * weights + 2 * inner_weights);
      std::printf("%-9s batch %4u  %9.1f us a step  %7.1f GF/s\n", table->name, rows, seconds * 1e6,
                  operations / seconds * 1e-9);
    }
  }
}
