#include "models/optimizers/muon.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "models/kernels/tasks.h"
#include "models/optimizers/moments.h"
#include "models/optimizers/newton_schulz.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::models {
namespace {

// Parameters in no hidden matrix, and where the second moment of the first of them lies.
struct Stretch {
  std::size_t begin = 0, end = 0, second = 0;
  std::size_t size() const { return end - begin; }
};

// All of them, in order. Matrices side by side leave no gap.
std::vector<Stretch> others(std::size_t params, const std::vector<HiddenMatrix>& matrices) {
  std::vector<Stretch> found;
  std::size_t at = 0, second = 0;
  const auto until = [&](std::size_t end) {
    if (at >= end) return;
    found.push_back({at, end, second});
    second += end - at;
  };
  for (const HiddenMatrix& matrix : matrices) {
    until(matrix.offset);
    at = matrix.offset + std::size_t{matrix.rows - 1} * matrix.stride + matrix.cols;
  }
  until(params);
  return found;
}

std::size_t size_of(const std::vector<Stretch>& stretches) {
  return stretches.empty() ? 0 : stretches.back().second + stretches.back().size();
}

// Threads share out the others by this many.
constexpr long others_grain = 1024;

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
  bool bears_full_rate() const override { return true; }
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
  StepRule rule = adam_rule(rate * config_.adam_share, config_.adam_beta1);
  rule.decay = static_cast<float>(-rate * config_.adam_share * config_.weight_decay);
  float *first = moments_[0].data(), *second = moments_[1].data();
  each_range(parallel_, static_cast<long>(moments_[1].size()), others_grain, [&](Range part) {
    const auto begin = static_cast<std::size_t>(part.begin), end = static_cast<std::size_t>(part.end);
    for (const Stretch& stretch : others_) {
      const std::size_t to = std::min(end, stretch.second + stretch.size());
      for (std::size_t s = std::max(begin, stretch.second); s < to; ++s) {
        const std::size_t i = stretch.begin + (s - stretch.second);
        delta[i] = step_rule::adamw(rule, gradient[i], first[i], second[s], weights[i]);
      }
    }
  });
}

}  // namespace

std::unique_ptr<Optimizer> make_muon(const OptimizerConfig& config, std::uint32_t params,
                                     std::vector<HiddenMatrix> matrices) {
  RUMOR_CHECK(!matrices.empty());
  std::vector<Stretch> rest = others(params, matrices);
  return std::make_unique<Muon>(config, params, std::move(matrices), std::move(rest));
}

}  // namespace rumor::models
