// Every optimizer against its formula worked out by hand, its state saved and restored.
#include "models/optimizers/optimizer.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

namespace rumor::models {
namespace {

std::unique_ptr<Optimizer> optimizer_of(const OptimizerConfig& config, std::uint32_t params) {
  return std::move(make_optimizer(config, params)).value();
}

std::vector<float> step(Optimizer& optimizer, const std::vector<float>& gradient, double rate) {
  std::vector<float> delta(gradient.size());
  optimizer.step(gradient, rate, delta, std::vector<float>(gradient.size(), 0.5f));
  return delta;
}

bool near(float a, double b) { return std::abs(a - b) <= 1e-6 * std::max(1.0, std::abs(b)); }

constexpr const char* kinds[] = {"sgd", "momentum", "rmsprop", "adam", "adamw", "nadamw", "adaptive_revision"};

}  // namespace

BOOST_AUTO_TEST_SUITE(optimizer)

BOOST_AUTO_TEST_CASE(sgd_is_rate_times_gradient) {
  const auto sgd = optimizer_of({.kind = "sgd"}, 3);
  BOOST_TEST((step(*sgd, {1, -2, 0}, 0.5) == std::vector<float>{-0.5f, 1.0f, 0.0f}));
  BOOST_TEST((step(*sgd, {1, -2, 0}, 0.25) == std::vector<float>{-0.25f, 0.5f, 0.0f}));
}

BOOST_AUTO_TEST_CASE(momentum_adds_what_it_kept) {
  const auto momentum = optimizer_of({.kind = "momentum", .momentum = 0.5}, 2);
  BOOST_TEST((step(*momentum, {1, 4}, 1) == std::vector<float>{-1, -4}));
  BOOST_TEST((step(*momentum, {1, 0}, 1) == std::vector<float>{-1.5f, -2}));   // 1 + 0.5 * 1, 0 + 0.5 * 4
  BOOST_TEST((step(*momentum, {0, 0}, 2) == std::vector<float>{-1.5f, -2}));  // 0.75 and 1, at twice the rate
}

BOOST_AUTO_TEST_CASE(rmsprop_divides_by_the_running_size) {
  const auto rmsprop = optimizer_of({.kind = "rmsprop", .beta2 = 0.75, .epsilon = 0.5}, 1);
  BOOST_TEST(near(step(*rmsprop, {4}, 1)[0], -4 / (2 + 0.5)));  // s = 0.25 * 16 = 4
  BOOST_TEST(near(step(*rmsprop, {2}, 1)[0], -2 / (2 + 0.5)));  // s = 0.75 * 4 + 0.25 * 4 = 4
}

BOOST_AUTO_TEST_CASE(adam_corrects_the_bias_of_its_first_steps) {
  const auto adam = optimizer_of({.kind = "adam", .momentum = 0.9, .beta2 = 0.999, .epsilon = 1e-8}, 2);
  // First step: both corrections cancel, so the step is the rate, whatever the gradient.
  const std::vector<float> first = step(*adam, {0.3f, -50}, 0.01);
  BOOST_TEST(near(first[0], -0.01));
  BOOST_TEST(near(first[1], 0.01));
  // Second: m = 0.9 * 0.1 * 0.3 + 0.1 * 0.6 = 0.087, over 1 - 0.81; s = 0.999 * 0.001 * 0.09 + 0.001 * 0.36,
  // over 1 - 0.998001.
  const double m = 0.087 / 0.19, s = (0.999 * 0.00009 + 0.00036) / 0.001999;
  BOOST_TEST(std::abs(step(*adam, {0.6f, 0}, 0.01)[0] + 0.01 * m / std::sqrt(s)) < 1e-6);
}

// The direction is that of optax.nadam: b1 m / (1 - b1^(t+1)) + (1 - b1) g / (1 - b1^t), over adam's denominator.
BOOST_AUTO_TEST_CASE(nadamw_looks_ahead_of_adamw) {
  const double b1 = 0.8, b2 = 0.9;
  const auto nadamw =
      optimizer_of({.kind = "nadamw", .momentum = b1, .beta2 = b2, .epsilon = 1e-8, .weight_decay = 0.1}, 1);
  double m = 0, s = 0;
  for (int t = 1; t <= 4; ++t) {
    const double g = t == 2 ? -3 : 0.5 * t;
    m = b1 * m + (1 - b1) * g;
    s = b2 * s + (1 - b2) * g * g;
    const double ahead = b1 * m / (1 - std::pow(b1, t + 1)) + (1 - b1) * g / (1 - std::pow(b1, t));
    const double expected = -0.01 * (ahead / (std::sqrt(s / (1 - std::pow(b2, t))) + 1e-8) + 0.1 * 0.5);
    BOOST_TEST(std::abs(step(*nadamw, {static_cast<float>(g)}, 0.01)[0] - expected) < 1e-6, "step " << t);
  }
}

BOOST_AUTO_TEST_CASE(gradient_and_delta_may_be_the_same_memory) {
  for (const char* kind : kinds) {
    const auto apart = optimizer_of({.kind = kind}, 3), together = optimizer_of({.kind = kind}, 3);
    for (int i = 1; i < 4; ++i) {
      std::vector<float> values = {0.1f * static_cast<float>(i), -2, 3};
      const std::vector<float> expected = step(*apart, values, 0.1);
      together->step(values, 0.1, values, std::vector<float>(3, 0.5f));
      BOOST_TEST((values == expected), kind);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_restored_optimizer_goes_on_with_equal_bits) {
  for (const char* kind : kinds) {
    const auto original = optimizer_of({.kind = kind}, 4), restored = optimizer_of({.kind = kind}, 4);
    for (int i = 0; i < 5; ++i) step(*original, {1, -2, 0.25f, 7}, 0.1);
    BOOST_REQUIRE(restored->load(original->save()).ok());
    BOOST_TEST((restored->save() == original->save()), kind);
    BOOST_TEST((step(*restored, {3, 1, -1, 0}, 0.1) == step(*original, {3, 1, -1, 0}, 0.1)), kind);
  }
}

BOOST_AUTO_TEST_CASE(damaged_state_is_refused_and_changes_nothing) {
  for (const char* kind : kinds) {
    const auto one = optimizer_of({.kind = kind}, 4);
    step(*one, {1, 2, 3, 4}, 0.1);
    const Bytes good = one->save();
    for (std::size_t size = 0; size < good.size(); ++size) {
      const Result<void> loaded = one->load(BytesView(good).first(size));
      BOOST_REQUIRE_MESSAGE(!loaded.ok(), kind << " cut to " << size);
      BOOST_TEST((loaded.error().code == Errc::corrupt));
    }
    Bytes longer = good;
    longer.push_back(0);
    BOOST_TEST(!one->load(longer).ok());
    BOOST_TEST(!optimizer_of({.kind = kind}, 5)->load(good).ok());
    for (const char* other : kinds) {
      if (other != kind)
        BOOST_TEST(!optimizer_of({.kind = other}, 4)->load(good).ok(), kind << " into " << other);
    }
    BOOST_TEST((one->save() == good));
  }
}

BOOST_AUTO_TEST_CASE(bad_configurations_are_refused) {
  const auto unknown = make_optimizer({.kind = "adagrad"}, 1);
  BOOST_REQUIRE(!unknown.ok());
  BOOST_TEST(unknown.error().text ==
             "unknown optimizer 'adagrad'; known: sgd, momentum, rmsprop, adam, adamw, nadamw, adaptive_revision, "
             "muon");
  BOOST_TEST(!make_optimizer({.momentum = 1.0}, 1).ok());
  BOOST_TEST(!make_optimizer({.beta2 = -0.1}, 1).ok());
  BOOST_TEST(!make_optimizer({.beta2 = std::nan("")}, 1).ok());
  BOOST_TEST(!make_optimizer({.epsilon = 0}, 1).ok());
  BOOST_TEST(!make_optimizer({.weight_decay = 1}, 1).ok());
  BOOST_TEST(!make_optimizer({.clip = -1}, 1).ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
