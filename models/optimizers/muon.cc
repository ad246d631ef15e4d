#include "models/optimizers/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "models/kernels/portable_math.h"
#include "models/kernels/tasks.h"
#include "models/optimizers/moments.h"
#include "models/optimizers/newton_schulz.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::models {
namespace {

struct Stretch {
  std::uint32_t begin = 0, end = 0;
};

// The parameters that are in no hidden matrix.
std::vector<Stretch> others(std::uint32_t params, const std::vector<HiddenMatrix>& matrices) {
  std::vector<char> hidden(params, 0);
  for (const HiddenMatrix& matrix : matrices)
    for (std::uint32_t row = 0; row < matrix.rows; ++row)
      std::fill_n(hidden.begin() + matrix.offset + std::size_t{row} * matrix.stride, matrix.cols, char{1});
  std::vector<Stretch> found;
  for (std::uint32_t i = 0; i < params; ++i) {
    if (hidden[i] != 0) continue;
    if (found.empty() || found.back().end != i) found.push_back({i, i});
    found.back().end = i + 1;
  }
  return found;
}

std::size_t size_of(const std::vector<Stretch>& stretches) {
  std::size_t size = 0;
  for (const Stretch& stretch : stretches) size += stretch.end - stretch.begin;
  return size;
}

// The moments: of every parameter the first one, of the others the second one besides, without gaps.
class Muon final : public Moments {
 public:
  Muon(const OptimizerConfig& config, std::uint32_t params, std::vector<HiddenMatrix> matrices,
       std::vector<Stretch> others)
      : Moments(config, params, {params, size_of(others)}),
        matrices_(std::move(matrices)),
        others_(std::move(others)) {}

  bool has_rule() const override { return false; }
  // A step has one size however noisy its gradient is.
  bool looks_ahead() const override { return true; }
  void set_parallel(Parallel* parallel) override { parallel_ = parallel; }
  std::size_t memory_bytes() const override;
  void step(std::span<const float> gradient, double rate, std::span<float> delta,
            std::span<const float> weights) override;

 private:
  // The memory of one thread.
  struct Desk {
    NewtonSchulz newton_schulz;
    LargeVector<float> momentum, orthogonal;  // one matrix, without gaps
  };

  void step_matrix(const HiddenMatrix& matrix, Desk& desk, const float* gradient, double rate, float* delta,
                   const float* weights);
  void step_others(const float* gradient, double rate, float* delta, const float* weights);

  std::vector<HiddenMatrix> matrices_;
  std::vector<Stretch> others_;
  std::vector<Desk> desks_;
  Parallel* parallel_ = nullptr;
};

std::size_t Muon::memory_bytes() const {
  std::size_t bytes = Moments::memory_bytes();
  for (const Desk& desk : desks_)
    bytes += desk.newton_schulz.memory_bytes() + capacity_bytes(desk.momentum, desk.orthogonal);
  return bytes;
}

void Muon::step(std::span<const float> gradient, double rate, std::span<float> delta, std::span<const float> weights) {
  RUMOR_CHECK(gradient.size() == params_ && delta.size() == params_ && weights.size() == params_);
  ++steps_;
  step_others(gradient.data(), rate, delta.data(), weights.data());
  desks_.resize(parallel_ != nullptr ? std::min<std::size_t>(parallel_->width(), matrices_.size()) : 1);
  each_task(parallel_, desks_.size(), [&](std::size_t part) {
    for (std::size_t m = part; m < matrices_.size(); m += desks_.size())
      step_matrix(matrices_[m], desks_[part], gradient.data(), rate, delta.data(), weights.data());
  });
}

void Muon::step_matrix(const HiddenMatrix& matrix, Desk& desk, const float* gradient, double rate, float* delta,
                       const float* weights) {
  const auto momentum = static_cast<float>(config_.momentum);
  const std::size_t rows = matrix.rows, cols = matrix.cols;
  desk.momentum.resize(rows * cols);
  desk.orthogonal.resize(rows * cols);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = matrix.offset + row * matrix.stride;
    float* kept = moments_[0].data() + at;
    float* out = desk.momentum.data() + row * cols;
    for (std::size_t i = 0; i < cols; ++i) {
      kept[i] = momentum * kept[i] + gradient[at + i];
      out[i] = gradient[at + i] + momentum * kept[i];
    }
  }
  desk.newton_schulz.orthogonalise(desk.momentum, rows, cols, desk.orthogonal);
  const auto factor = static_cast<float>(-rate * 0.2 * std::sqrt(static_cast<double>(std::max(rows, cols))));
  const auto decay = static_cast<float>(-rate * config_.weight_decay);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = matrix.offset + row * matrix.stride;
    const float* direction = desk.orthogonal.data() + row * cols;
    for (std::size_t i = 0; i < cols; ++i) delta[at + i] = factor * direction[i] + decay * weights[at + i];
  }
}

void Muon::step_others(const float* gradient, double rate, float* delta, const float* weights) {
  const double share = rate * config_.adam_share, beta1 = config_.adam_beta1;
  const StepRule rule{.kind = StepRule::Kind::adamw,
                      .factor = static_cast<float>(-share / (1 - portable_power(beta1, steps_))),
                      .keep1 = static_cast<float>(beta1),
                      .take1 = static_cast<float>(1 - beta1),
                      .keep2 = static_cast<float>(config_.beta2),
                      .take2 = static_cast<float>(1 - config_.beta2),
                      .bias_correction = static_cast<float>(1 / (1 - portable_power(config_.beta2, steps_))),
                      .epsilon = static_cast<float>(config_.epsilon),
                      .decay = static_cast<float>(-share * config_.weight_decay)};
  float *first = moments_[0].data(), *second = moments_[1].data();
  for (const Stretch& stretch : others_)
    for (std::uint32_t i = stretch.begin; i < stretch.end; ++i)
      delta[i] = step_rule::adamw(rule, gradient[i], first[i], *second++, weights[i]);
}

}  // namespace

std::unique_ptr<Optimizer> make_muon(const OptimizerConfig& config, std::uint32_t params,
                                     std::vector<HiddenMatrix> matrices) {
  RUMOR_CHECK(!matrices.empty());
  std::vector<Stretch> rest = others(params, matrices);
  return std::make_unique<Muon>(config, params, std::move(matrices), std::move(rest));
}

}  // namespace rumor::models
