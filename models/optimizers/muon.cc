#include "models/optimizers/muon.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/kernels/tasks.h"
#include "models/optimizers/moments.h"
#include "models/optimizers/newton_schulz.h"
#include "runtime/base/check.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::models {
namespace {

using Stretch = MatrixStep::Stretch;

// All of them, in order. Matrices side by side leave no gap.
std::vector<Stretch> others(std::uint32_t params, const std::vector<HiddenMatrix>& matrices) {
  std::vector<Stretch> found;
  std::uint32_t at = 0, second = 0;
  const auto until = [&](std::uint32_t end) {
    if (at >= end) return;
    found.push_back({at, end, second});
    second += end - at;
  };
  for (const HiddenMatrix& matrix : matrices) {
    until(matrix.offset);
    at = matrix.offset + (matrix.rows - 1) * matrix.stride + matrix.cols;
  }
  until(params);
  return found;
}

std::size_t size_of(const std::vector<Stretch>& stretches) {
  return stretches.empty() ? 0 : std::size_t{stretches.back().second} + stretches.back().size();
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
        others_(std::move(others)),
        adam_share_(config.adam_share) {}

  bool has_rule() const override { return false; }
  // A step has one size however noisy its gradient is.
  bool bears_full_rate() const override { return true; }
  void set_parallel(Parallel* parallel) override { parallel_ = parallel; }
  void scale_adam_share(double factor) override { adam_share_ = config_.adam_share * factor; }
  MatrixStep begin_matrix_step(double rate) override;
  std::span<const HiddenMatrix> matrices() const override { return matrices_; }
  std::size_t memory_bytes() const override;
  void step(std::span<const float> gradient, double rate, std::span<float> delta,
            std::span<const float> weights) override;

 private:
  // The memory of one thread.
  struct Desk {
    NewtonSchulz newton_schulz;
    LargeVector<float> momentum, orthogonal;  // one matrix, without gaps
  };

  void step_matrix(const MatrixStep& step, const HiddenMatrix& matrix, Desk& desk, const float* gradient, float* delta,
                   const float* weights);
  void step_others(const StepRule& rule, const float* gradient, float* delta, const float* weights);

  std::vector<HiddenMatrix> matrices_;
  std::vector<Stretch> others_;
  double adam_share_;
  std::vector<Desk> desks_;
  Parallel* parallel_ = nullptr;
};

std::size_t Muon::memory_bytes() const {
  std::size_t bytes = Moments::memory_bytes();
  for (const Desk& desk : desks_)
    bytes += desk.newton_schulz.memory_bytes() + capacity_bytes(desk.momentum, desk.orthogonal);
  return bytes;
}

MatrixStep Muon::begin_matrix_step(double rate) {
  ++steps_;
  const double adam_rate = rate * adam_share_;
  MatrixStep step{.rate = rate,
                  .weight_decay = config_.weight_decay,
                  .momentum = static_cast<float>(config_.momentum),
                  .others = adam_rule(adam_rate, config_.adam_beta1),
                  .matrices = matrices_,
                  .stretches = others_};
  step.others.kind = StepRule::Kind::adamw;
  step.others.decay = static_cast<float>(-adam_rate * config_.weight_decay);
  return step;
}

void Muon::step(std::span<const float> gradient, double rate, std::span<float> delta, std::span<const float> weights) {
  RUMOR_CHECK(gradient.size() == params_ && delta.size() == params_ && weights.size() == params_);
  const MatrixStep step = begin_matrix_step(rate);
  step_others(step.others, gradient.data(), delta.data(), weights.data());
  desks_.resize(parallel_ != nullptr ? std::min<std::size_t>(parallel_->width(), matrices_.size()) : 1);
  each_task(parallel_, desks_.size(), [&](std::size_t part) {
    for (std::size_t m = part; m < matrices_.size(); m += desks_.size())
      step_matrix(step, matrices_[m], desks_[part], gradient.data(), delta.data(), weights.data());
  });
}

void Muon::step_matrix(const MatrixStep& step, const HiddenMatrix& matrix, Desk& desk, const float* gradient,
                       float* delta, const float* weights) {
  const float momentum = step.momentum;
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
  const StepRule rule = step.of(matrix);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = matrix.offset + row * matrix.stride;
    const float* direction = desk.orthogonal.data() + row * cols;
    for (std::size_t i = 0; i < cols; ++i) delta[at + i] = step_rule::sgdw(rule, direction[i], weights[at + i]);
  }
}

void Muon::step_others(const StepRule& rule, const float* gradient, float* delta, const float* weights) {
  float *first = moments_[0].data(), *second = moments_[1].data();
  each_range(parallel_, static_cast<long>(moments_[1].size()), others_grain, [&](Range part) {
    const auto begin = static_cast<std::size_t>(part.begin), end = static_cast<std::size_t>(part.end);
    for (const Stretch& stretch : others_) {
      const std::size_t to = std::min<std::size_t>(end, std::size_t{stretch.second} + stretch.size());
      for (std::size_t s = std::max<std::size_t>(begin, stretch.second); s < to; ++s) {
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
