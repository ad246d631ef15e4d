// The four optimizers. State is one or two floats per parameter; a step uses + - * / and square roots only,
// each rounded once (IEEE 754), so equal gradients give equal deltas on every machine.
#include "models/optimizer.h"

#include <bit>
#include <cmath>
#include <vector>

#include "models/portable_math.h"
#include "runtime/base/bytes.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

static_assert(std::endian::native == std::endian::little, "state is saved as the floats lie in memory");

// Shared by all kinds: the number of steps and any moments, saved and restored.
class Moments : public Optimizer {
 public:
  Moments(OptimizerConfig config, std::uint32_t params, std::size_t moments)
      : config_(std::move(config)), params_(params), moments_(moments, std::vector<float>(params, 0.0f)) {}

  void step(std::span<const float> gradient, double rate, std::span<float> delta) final {
    RUMOR_CHECK(gradient.size() == params_);
    RUMOR_CHECK(delta.size() == params_);
    ++steps_;
    update(gradient.data(), rate, delta.data());
  }

  // Kind, steps, parameters, then each moment's floats.
  Bytes save() const final {
    ByteWriter out;
    out.text(config_.kind);
    out.u64(steps_);
    out.u32(params_);
    for (const std::vector<float>& moment : moments_)
      out.raw({reinterpret_cast<const std::uint8_t*>(moment.data()), moment.size() * sizeof(float)});
    return out.take();
  }

  Result<void> load(BytesView state) final {
    ByteReader in(state);
    const std::string kind = in.text(16);
    const std::uint64_t steps = in.u64();
    const std::uint32_t params = in.u32();
    if (in.failed())
      return Error{Errc::corrupt, str("optimizer state of ", state.size(), " bytes is cut short")};
    if (kind != config_.kind || params != params_)
      return Error{Errc::corrupt, str("optimizer state is of '", kind, "' with ", params,
                                      " parameters, not of ", config_.kind, " with ", params_)};
    const std::size_t expected = moments_.size() * params_ * sizeof(float);
    if (in.remaining() != expected)
      return Error{Errc::corrupt,
                   str("optimizer state has ", in.remaining(), " bytes of moments, not ", expected)};
    steps_ = steps;
    for (std::vector<float>& moment : moments_) {
      const BytesView bytes = in.raw(moment.size() * sizeof(float));
      std::memcpy(moment.data(), bytes.data(), bytes.size());
    }
    return {};
  }

 protected:
  // Reads gradient[i] before it writes delta[i]: the two may be the same memory.
  virtual void update(const float* gradient, double rate, float* delta) = 0;

  OptimizerConfig config_;
  std::uint32_t params_;
  std::uint64_t steps_ = 0;
  std::vector<std::vector<float>> moments_;
};

class Sgd final : public Moments {
 public:
  Sgd(const OptimizerConfig& config, std::uint32_t params) : Moments(config, params, 0) {}
  void update(const float* gradient, double rate, float* delta) override {
    const auto factor = static_cast<float>(-rate);
    for (std::uint32_t i = 0; i < params_; ++i) delta[i] = factor * gradient[i];
  }
};

// v = momentum v + g;  delta = -rate v  (Polyak 1964, as PyTorch has it: no dampening)
class Momentum final : public Moments {
 public:
  Momentum(const OptimizerConfig& config, std::uint32_t params) : Moments(config, params, 1) {}
  void update(const float* gradient, double rate, float* delta) override {
    const auto factor = static_cast<float>(-rate);
    const auto keep = static_cast<float>(config_.momentum);
    float* v = moments_[0].data();
    for (std::uint32_t i = 0; i < params_; ++i) {
      v[i] = keep * v[i] + gradient[i];
      delta[i] = factor * v[i];
    }
  }
};

// s = beta2 s + (1 - beta2) g^2;  delta = -rate g / (sqrt s + epsilon)  (Tieleman, Hinton 2012)
class RmsProp final : public Moments {
 public:
  RmsProp(const OptimizerConfig& config, std::uint32_t params) : Moments(config, params, 1) {}
  void update(const float* gradient, double rate, float* delta) override {
    const auto factor = static_cast<float>(-rate), epsilon = static_cast<float>(config_.epsilon);
    const auto keep = static_cast<float>(config_.beta2), take = static_cast<float>(1 - config_.beta2);
    float* s = moments_[0].data();
    for (std::uint32_t i = 0; i < params_; ++i) {
      const float g = gradient[i];
      s[i] = keep * s[i] + take * (g * g);
      delta[i] = factor * g / (std::sqrt(s[i]) + epsilon);
    }
  }
};

// m = beta1 m + (1 - beta1) g;  s = beta2 s + (1 - beta2) g^2;  t steps so far:
// delta = -rate (m / (1 - beta1^t)) / (sqrt(s / (1 - beta2^t)) + epsilon)  (Kingma, Ba 2015, algorithm 1)
class Adam final : public Moments {
 public:
  Adam(const OptimizerConfig& config, std::uint32_t params) : Moments(config, params, 2) {}
  void update(const float* gradient, double rate, float* delta) override {
    const auto factor = static_cast<float>(-rate / (1 - portable_power(config_.momentum, steps_)));
    const auto mend = static_cast<float>(1 / (1 - portable_power(config_.beta2, steps_)));
    const auto keep1 = static_cast<float>(config_.momentum), take1 = static_cast<float>(1 - config_.momentum);
    const auto keep2 = static_cast<float>(config_.beta2), take2 = static_cast<float>(1 - config_.beta2);
    const auto epsilon = static_cast<float>(config_.epsilon);
    float* m = moments_[0].data();
    float* s = moments_[1].data();
    for (std::uint32_t i = 0; i < params_; ++i) {
      const float g = gradient[i];
      m[i] = keep1 * m[i] + take1 * g;
      s[i] = keep2 * s[i] + take2 * (g * g);
      delta[i] = factor * m[i] / (std::sqrt(s[i] * mend) + epsilon);
    }
  }
};

}  // namespace

Result<std::unique_ptr<Optimizer>> make_optimizer(const OptimizerConfig& config, std::uint32_t params) {
  const auto is_fraction = [](double x) { return x >= 0 && x < 1; };
  if (!is_fraction(config.momentum))
    return Error{Errc::usage, str("optimizer momentum ", config.momentum, " is not in [0, 1)")};
  if (!is_fraction(config.beta2))
    return Error{Errc::usage, str("optimizer beta2 ", config.beta2, " is not in [0, 1)")};
  if (!(config.epsilon > 0 && config.epsilon < 1))
    return Error{Errc::usage, str("optimizer epsilon ", config.epsilon, " is not in (0, 1)")};
  std::unique_ptr<Optimizer> optimizer;
  if (config.kind == "sgd") optimizer = std::make_unique<Sgd>(config, params);
  if (config.kind == "momentum") optimizer = std::make_unique<Momentum>(config, params);
  if (config.kind == "rmsprop") optimizer = std::make_unique<RmsProp>(config, params);
  if (config.kind == "adam") optimizer = std::make_unique<Adam>(config, params);
  if (!optimizer)
    return Error{Errc::usage,
                 str("unknown optimizer '", config.kind, "'; known: sgd, momentum, rmsprop, adam")};
  return optimizer;
}

}  // namespace rumor::models
