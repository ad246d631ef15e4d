// Whole training steps, forward, backward and optimizer, for tests/bench/torch_speed.py, which drives it.
//
// Reads lines "NAME THREADS SECONDS" from standard input and answers each with one line: the best and the
// middle step of so many seconds in milliseconds, the bare multiply-add rate of one core in 10^9 operations a
// second, measured in between, and the loss at the end. "list" answers with the names. Weights, pictures and
// labels are drawn once for each name; the optimizer is plain SGD.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/families/adapters.h"
#include "models/families/model.h"
#include "models/kernels/kernels.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/prng.h"
#include "runtime/threads/thread_pool.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/measure.h"

namespace {

using namespace rumor;
using namespace rumor::models;

struct Case {
  ModelConfig config;
  std::uint32_t rows = 0;
};

ModelConfig gpt(std::uint32_t layers, std::uint32_t heads, std::uint32_t embedding, std::uint32_t context) {
  ModelConfig config;
  config.family = "gpt";
  config.vocabulary = 256;
  config.layers = layers;
  config.heads = heads;
  config.embedding = embedding;
  config.context = context;
  return config;
}

ModelConfig llama(std::uint32_t layers, std::uint32_t heads, std::uint32_t groups, std::uint32_t embedding,
                  std::uint32_t feed_forward, std::uint32_t context) {
  ModelConfig config = gpt(layers, heads, embedding, context);
  config.family = "llama";
  config.kv_heads = groups;
  config.feed_forward = feed_forward;
  return config;
}

ModelConfig lstm(std::vector<std::uint32_t> hidden, std::uint32_t embedding, std::uint32_t context) {
  ModelConfig config;
  config.family = "lstm";
  config.vocabulary = 256;
  config.hidden = std::move(hidden);
  config.embedding = embedding;
  config.context = context;
  return config;
}

// Adapters of rank 8 beside a frozen model, where PEFT has them by default.
ModelConfig lora(ModelConfig config) {
  const auto whole = make_model(config).value();
  auto base = std::make_shared<FrozenBase>();
  base->weights = to_floats(initial_weights(*whole, 1, 24), 24);
  config.adapter.kind = "lora";
  config.adapter.base = std::move(base);
  return config;
}

// A model of torch_speed.py goes by the same name here.
std::map<std::string, Case> cases() {
  ModelConfig mlp;
  mlp.hidden = {1024, 1024};
  ModelConfig cnn;
  cnn.family = "cnn";
  cnn.stage_channels = {32, 64};
  cnn.pool_every = 2;
  cnn.hidden = {128};
  for (ModelConfig* config : {&mlp, &cnn}) {
    config->channels = 1;
    config->height = config->width = 28;
    config->inputs = 784;
    config->classes = 10;
  }
  return {{"mlp-64", {mlp, 64}},
          {"mlp-128", {mlp, 128}},
          {"cnn-64", {cnn, 64}},
          {"gpt-4x128", {gpt(4, 4, 128, 128), 16}},
          {"gpt-6x384", {gpt(6, 6, 384, 256), 8}},
          {"llama-5x128", {llama(5, 4, 2, 128, 384, 128), 16}},
          {"llama-8x384", {llama(8, 6, 2, 384, 1024, 256), 8}},
          {"lora-8x384", {lora(llama(8, 6, 2, 384, 1024, 256)), 8}},
          {"llama-10x512", {llama(10, 8, 4, 512, 1408, 64), 4}},
          {"lora-10x512", {lora(llama(10, 8, 4, 512, 1408, 64)), 4}},
          {"lstm-2x256", {lstm({256, 256}, 128, 128), 16}},
          {"lstm-1x512", {lstm({512}, 128, 64), 32}}};
}

class Training {
 public:
  explicit Training(const Case& c) : rows_(c.rows), model_(std::move(make_model(c.config)).value()) {
    Prng prng(1);
    const auto weights = initial_weights(*model_, 1, 24);
    params_.resize(weights.size());
    gradient_.resize(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) params_[i] = static_cast<float>(weights[i]) * 0x1p-24f;
    if (c.config.vocabulary > 0) {
      tokens_.resize(std::size_t{rows_} * (c.config.context + 1));
      for (Token& token : tokens_)
        token = static_cast<Token>(prng.below(c.config.vocabulary));
      return;
    }
    x_.resize(std::size_t{rows_} * c.config.inputs);
    label_.resize(rows_);
    for (float& value : x_) value = static_cast<float>(prng.between(-1000, 1000)) / 600;
    for (std::uint8_t& label : label_) label = static_cast<std::uint8_t>(prng.below(c.config.classes));
  }

  float step(Parallel& parallel) {
    model_->set_parallel(&parallel);
    const float loss = model_->loss_and_gradient(params_, {x_, label_, rows_, tokens_}, gradient_);
    constexpr std::size_t piece = 1 << 16;
    parallel.each((params_.size() + piece - 1) / piece, [&](std::size_t i) {
      const auto count = static_cast<long>(std::min(piece, params_.size() - i * piece));
      kernels().axpy(count, -0.01f, gradient_.data() + i * piece, params_.data() + i * piece);
    });
    return loss;
  }

 private:
  std::uint32_t rows_;
  std::unique_ptr<Model> model_;
  LargeVector<float> params_, gradient_, x_;
  std::vector<std::uint8_t> label_;
  std::vector<Token> tokens_;
};

void answer(Training& training, unsigned threads, double seconds) {
  daemon::ThreadPool pool(threads);
  std::vector<double> steps;
  double spent = 0, peak = 0;
  float loss = 0;
  while (spent < seconds || steps.size() < 3) {
    steps.push_back(bench::seconds_of([&] { loss = training.step(pool); }));
    spent += steps.back();
    peak = std::max(peak, bench::fma_rate());
  }
  std::sort(steps.begin(), steps.end());
  std::printf("%.4f %.4f %.2f %.5f\n", steps.front() * 1e3, steps[steps.size() / 2] * 1e3, peak * 1e-9,
              static_cast<double>(loss));
}

}  // namespace

int main() {
  const std::map<std::string, Case> known = cases();
  std::map<std::string, std::unique_ptr<Training>> trainings;
  for (std::string name; std::cin >> name; std::fflush(stdout)) {
    if (name == "list") {
      for (const auto& [each, unused] : known) std::printf("%s ", each.c_str());
      std::printf("\n");
      continue;
    }
    unsigned threads = 1;
    double seconds = 0;
    std::cin >> threads >> seconds;
    const auto found = known.find(name);
    if (!std::cin || found == known.end() || threads < 1) return 2;
    std::unique_ptr<Training>& training = trainings[name];
    if (!training) training = std::make_unique<Training>(found->second);
    answer(*training, threads, seconds);
  }
}
