// The optimizers. State is up to three floats per parameter; step_rule.h has the formulas of a step.
#include "models/optimizers/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "models/kernels/portable_math.h"
#include "models/optimizers/adaptive_revision.h"
#include "models/optimizers/moments.h"
#include "models/optimizers/muon.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

// An optimizer whose step is a rule.
class ByRule : public Moments {
 public:
  ByRule(const OptimizerConfig& config, std::uint32_t params, std::size_t moments)
      : Moments(config, params, std::vector<std::size_t>(moments, params)) {}

  StepRule begin_step(double rate, std::span<const float> weights) final {
    ++steps_;
    weights_ = weights;
    return rule(rate);
  }

 protected:
  // The rule of step number steps_.
  virtual StepRule rule(double rate) = 0;

  std::span<const float> weights_;  // of this step
};

class Sgd final : public ByRule {
 public:
  Sgd(const OptimizerConfig& config, std::uint32_t params) : ByRule(config, params, 0) {}
  StepRule rule(double rate) override {
    return {.kind = StepRule::Kind::sgd, .factor = static_cast<float>(-rate)};
  }
};

// Polyak 1964, as PyTorch has it: no dampening.
class Momentum final : public ByRule {
 public:
  Momentum(const OptimizerConfig& config, std::uint32_t params) : ByRule(config, params, 1) {}
  StepRule rule(double rate) override {
    return {.kind = StepRule::Kind::momentum,
            .factor = static_cast<float>(-rate),
            .keep1 = static_cast<float>(config_.momentum),
            .first = moments_[0].data()};
  }
};

// Tieleman, Hinton 2012.
class RmsProp final : public ByRule {
 public:
  RmsProp(const OptimizerConfig& config, std::uint32_t params) : ByRule(config, params, 1) {}
  StepRule rule(double rate) override {
    return {.kind = StepRule::Kind::rmsprop,
            .factor = static_cast<float>(-rate),
            .keep2 = static_cast<float>(config_.beta2),
            .take2 = static_cast<float>(1 - config_.beta2),
            .epsilon = static_cast<float>(config_.epsilon),
            .second = moments_[0].data()};
  }
};

// Kingma, Ba 2015, algorithm 1: both moments are corrected for the zero they began with.
class Adam : public ByRule {
 public:
  Adam(const OptimizerConfig& config, std::uint32_t params) : ByRule(config, params, 2) {}
  StepRule rule(double rate) override {
    StepRule rule = adam_rule(rate, config_.momentum);
    rule.first = moments_[0].data();
    rule.second = moments_[1].data();
    return rule;
  }
};

// Loshchilov, Hutter 2019: the decay is no part of the gradient. All parameters decay, as torch.optim.AdamW has it.
class AdamW : public Adam {
 public:
  using Adam::Adam;
  StepRule rule(double rate) override {
    RUMOR_CHECK(weights_.size() == params_);
    StepRule rule = Adam::rule(rate);
    rule.kind = StepRule::Kind::adamw;
    rule.decay = static_cast<float>(-rate * config_.weight_decay);
    rule.weights = weights_.data();
    return rule;
  }
};

// Dozat 2016, "Incorporating Nesterov momentum into Adam", with AdamW's decay; momentum constant over the steps.
class NadamW final : public AdamW {
 public:
  using AdamW::AdamW;
  StepRule rule(double rate) override {
    const double beta1 = config_.momentum;
    StepRule rule = AdamW::rule(rate);
    rule.kind = StepRule::Kind::nadamw;
    rule.factor = static_cast<float>(-rate * beta1 / (1 - portable_power(beta1, steps_ + 1)));
    rule.ahead = static_cast<float>(-rate * (1 - beta1) / (1 - portable_power(beta1, steps_)));
    return rule;
  }
};

// McMahan, Streeter 2014.
class AdaptiveRevision final : public ByRule {
 public:
  AdaptiveRevision(const OptimizerConfig& config, std::uint32_t params) : ByRule(config, params, 3) {
    for (const std::size_t moment : {0, 1}) moments_[moment].assign(params, 1.0f);
  }
  StepRule rule(double rate) override {
    return {.kind = StepRule::Kind::adaptive_revision,
            .factor = static_cast<float>(-rate),
            .first = moments_[0].data(),
            .second = moments_[1].data(),
            .last = moments_[2].data()};
  }
  bool wants_changes_of_others() const override { return true; }
  void revise(double rate, std::span<const std::uint32_t> index, std::span<float> change) override {
    if (rate > 0)
      models::revise({moments_[0], moments_[1], moments_[2]}, rate, index, change);
    else
      std::fill(change.begin(), change.end(), 0.0f);
  }
};

}  // namespace

void Optimizer::revise(double, std::span<const std::uint32_t>, std::span<float>) {
  RUMOR_CHECK(wants_changes_of_others());
}

StepRule Optimizer::begin_step(double, std::span<const float>) {
  RUMOR_CHECK(false);  // a kind without a rule
  return {};
}

MatrixStep Optimizer::begin_matrix_step(double) {
  RUMOR_CHECK(false);  // a kind with a rule
  return {};
}

double euclidean_norm(std::span<const float> values) {
  constexpr std::size_t lanes = 16;
  double squares[lanes] = {};
  const std::size_t whole = values.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) squares[lane] += double{values[i + lane]} * values[i + lane];
  for (std::size_t i = whole; i < values.size(); ++i) squares[i - whole] += double{values[i]} * values[i];
  double sum = 0;
  for (const double square : squares) sum += square;
  return std::sqrt(sum);
}

double clip_by_norm(std::span<float> gradient, double norm_max) {
  RUMOR_CHECK(norm_max > 0);
  const double norm = euclidean_norm(gradient);
  const double share = norm_max / (norm + 1e-6);
  if (!(share < 1) || !std::isfinite(norm)) return norm;
  const auto factor = static_cast<float>(share);
  for (float& value : gradient) value *= factor;
  return norm;
}

// Reads gradient[i] before it writes delta[i]: the two may be the same memory.
void Optimizer::step(std::span<const float> gradient, double rate, std::span<float> delta,
                     std::span<const float> weights) {
  RUMOR_CHECK(gradient.size() == params());
  RUMOR_CHECK(delta.size() == params());
  const StepRule rule = begin_step(rate, weights);
  const std::size_t size = delta.size();
  const float* g = gradient.data();
  float* d = delta.data();
  switch (rule.kind) {
    case StepRule::Kind::sgd:
      for (std::size_t i = 0; i < size; ++i) d[i] = step_rule::sgd(rule, g[i]);
      break;
    case StepRule::Kind::momentum:
      for (std::size_t i = 0; i < size; ++i) d[i] = step_rule::momentum(rule, g[i], rule.first[i]);
      break;
    case StepRule::Kind::rmsprop:
      for (std::size_t i = 0; i < size; ++i) d[i] = step_rule::rmsprop(rule, g[i], rule.second[i]);
      break;
    case StepRule::Kind::adam:
      for (std::size_t i = 0; i < size; ++i)
        d[i] = step_rule::adam(rule, g[i], rule.first[i], rule.second[i]);
      break;
    case StepRule::Kind::adamw:
      for (std::size_t i = 0; i < size; ++i)
        d[i] = step_rule::adamw(rule, g[i], rule.first[i], rule.second[i], rule.weights[i]);
      break;
    case StepRule::Kind::nadamw:
      for (std::size_t i = 0; i < size; ++i)
        d[i] = step_rule::nadamw(rule, g[i], rule.first[i], rule.second[i], rule.weights[i]);
      break;
    case StepRule::Kind::adaptive_revision:
      for (std::size_t i = 0; i < size; ++i)
        d[i] = step_rule::adaptive_revision(rule, g[i], rule.first[i], rule.second[i], rule.last[i]);
      break;
  }
}

namespace {

Result<void> check(const OptimizerConfig& config) {
  const auto is_fraction = [](double x) { return x >= 0 && x < 1; };
  if (!is_fraction(config.momentum))
    return Error{Errc::usage, str("optimizer momentum ", config.momentum, " is not in [0, 1)")};
  if (!is_fraction(config.beta2))
    return Error{Errc::usage, str("optimizer beta2 ", config.beta2, " is not in [0, 1)")};
  if (!(config.epsilon > 0 && config.epsilon < 1))
    return Error{Errc::usage, str("optimizer epsilon ", config.epsilon, " is not in (0, 1)")};
  if (!is_fraction(config.weight_decay))
    return Error{Errc::usage, str("optimizer weight_decay ", config.weight_decay, " is not in [0, 1)")};
  if (!(config.clip >= 0)) return Error{Errc::usage, str("optimizer clip ", config.clip, " is below 0")};
  if (!(config.adam_share > 0))
    return Error{Errc::usage, str("optimizer adam_share ", config.adam_share, " is not above 0")};
  if (!is_fraction(config.adam_beta1))
    return Error{Errc::usage, str("optimizer adam_beta1 ", config.adam_beta1, " is not in [0, 1)")};
  return {};
}

}  // namespace

Result<std::unique_ptr<Optimizer>> make_optimizer(const OptimizerConfig& config, std::uint32_t params,
                                                  std::vector<HiddenMatrix> matrices) {
  if (auto possible = check(config); !possible) return possible.error();
  if (config.kind == "muon" && matrices.empty())
    return Error{Errc::usage,
                 "optimizer.kind = \"muon\" is for hidden matrices, and this model has none; use \"adamw\""};
  std::unique_ptr<Optimizer> optimizer;
  if (config.kind == "sgd") optimizer = std::make_unique<Sgd>(config, params);
  if (config.kind == "momentum") optimizer = std::make_unique<Momentum>(config, params);
  if (config.kind == "rmsprop") optimizer = std::make_unique<RmsProp>(config, params);
  if (config.kind == "adam") optimizer = std::make_unique<Adam>(config, params);
  if (config.kind == "adamw") optimizer = std::make_unique<AdamW>(config, params);
  if (config.kind == "nadamw") optimizer = std::make_unique<NadamW>(config, params);
  if (config.kind == "adaptive_revision") optimizer = std::make_unique<AdaptiveRevision>(config, params);
  if (config.kind == "muon") optimizer = make_muon(config, params, std::move(matrices));
  if (!optimizer)
    return Error{Errc::usage,
                 str("unknown optimizer '", config.kind,
                     "'; known: sgd, momentum, rmsprop, adam, adamw, nadamw, adaptive_revision, muon")};
  return optimizer;
}

}  // namespace rumor::models
