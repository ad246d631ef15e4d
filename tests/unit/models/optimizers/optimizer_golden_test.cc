// AdamW and clipping against PyTorch's numbers (golden_optimizer.py), AdaptiveRevision against a slow
// reference.
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <vector>

#include "models/optimizers/adaptive_revision.h"
#include "models/optimizers/optimizer.h"
#include "runtime/base/prng.h"

namespace rumor::models {
namespace {

struct Golden {
  float norm;  // of the gradient, before it was cut
  std::vector<float> weights;
};

const std::vector<Golden> golden_steps = {
    {0.984250963f, {-0.444999993f, -0.197500005f, -0.0499999933f, 0.197500005f, 0.545000017f}},
    {0.85695684f, {-0.425524324f, -0.219415784f, -0.0233756918f, 0.161592618f, 0.540640295f}},
    {0.770551741f, {-0.397057533f, -0.242087856f, -0.0373348966f, 0.169124767f, 0.543672681f}},
    {1.030776381f, {-0.395690799f, -0.245985195f, -0.0487391725f, 0.162590265f, 0.562490404f}},
    {0.770551741f, {-0.398441434f, -0.263972908f, -0.0388265401f, 0.161781177f, 0.567186236f}},
    {0.85695684f, {-0.389093131f, -0.279190063f, -0.0410951152f, 0.176808238f, 0.577661991f}},
};

// The paper's rule for one parameter, in double, with the gradients of others known when one's own comes in.
struct Reference {
  double rate, z = 1, top = 1, weight = 0;  // weight: one's own changes only

  void step(double gradient, double others) {
    const double before = rate / std::sqrt(top);
    z += gradient * gradient + 2 * gradient * others;
    top = std::max(top, z);
    const double after = rate / std::sqrt(top);
    weight += -after * gradient + (before - after) * others;
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(optimizer_golden)

BOOST_AUTO_TEST_CASE(adamw_and_clipping_are_those_of_pytorch) {
  const OptimizerConfig config{
      .kind = "adamw", .momentum = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .weight_decay = 0.2};
  const auto optimizer = std::move(make_optimizer(config, 5)).value();
  std::vector<float> weights = {-0.5f, -0.25f, 0, 0.25f, 0.5f}, gradient(5), delta(5);
  for (int step = 0; step < static_cast<int>(golden_steps.size()); ++step) {
    for (int i = 0; i < 5; ++i)
      gradient[static_cast<std::size_t>(i)] = static_cast<float>((7 * step + 3 * i) % 11 - 5) / 8;
    const Golden& expected = golden_steps[static_cast<std::size_t>(step)];
    BOOST_TEST(clip_by_norm(gradient, 0.75) == expected.norm, boost::test_tools::tolerance(1e-6));
    optimizer->step(gradient, 0.05, delta, weights);
    for (std::size_t i = 0; i < 5; ++i) {
      weights[i] += delta[i];
      BOOST_TEST(std::abs(weights[i] - expected.weights[i]) < 2e-7, "step " << step << " parameter " << i);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_short_or_broken_gradient_is_not_cut) {
  std::vector<float> gradient(37, 0.5f);
  const std::vector<float> before = gradient;
  BOOST_TEST(clip_by_norm(gradient, 4) == std::sqrt(37 * 0.25), boost::test_tools::tolerance(1e-12));
  BOOST_TEST((gradient == before));
  clip_by_norm(gradient, 1);
  BOOST_TEST(clip_by_norm(gradient, 2) == 1, boost::test_tools::tolerance(1e-5));
  gradient[20] = INFINITY;
  clip_by_norm(gradient, 1);
  BOOST_TEST(gradient[0] != 0);
}

BOOST_AUTO_TEST_CASE(adaptive_revision_ends_where_the_paper_says) {
  constexpr std::uint32_t params = 8;
  const auto optimizer = std::move(make_optimizer({.kind = "adaptive_revision"}, params)).value();
  BOOST_TEST(optimizer->wants_changes_of_others());
  std::vector<Reference> reference(params, Reference{.rate = 0.25});
  std::vector<double> weight(params, 0);
  std::vector<float> gradient(params), delta(params);
  Prng prng(5);
  const auto draw = [&prng] { return static_cast<double>(prng.between(-1000, 1000)) / 500; };
  for (int step = 0; step < 200; ++step) {
    for (float& value : gradient) value = static_cast<float>(draw());
    optimizer->step(gradient, 0.25, delta);
    for (std::uint32_t i = 0; i < params; ++i) weight[i] += delta[i];
    // Meanwhile others changed some of the parameters: 0 and 1 never, 7 always.
    std::vector<std::uint32_t> index;
    std::vector<float> change;
    for (std::uint32_t i = 0; i < params; ++i) {
      const bool changed = i == 7 || (i > 1 && prng.chance(1, 3));
      const double others = changed ? draw() + (i == 7 ? gradient[i] : 0) : 0;
      if (changed) {
        index.push_back(i);
        change.push_back(static_cast<float>(-others * 0.25 / std::sqrt(reference[i].top)));
      }
      reference[i].step(gradient[i], others);
    }
    optimizer->revise(0.25, index, change);
    for (std::size_t e = 0; e < index.size(); ++e) weight[index[e]] += change[e];
  }
  for (std::uint32_t i = 0; i < params; ++i)
    BOOST_TEST(std::abs(weight[i] - reference[i].weight) < 1e-4,
               "parameter " << i << ": " << weight[i] << " for " << reference[i].weight);
  // Changes of other peers in the same direction lower the learning rate.
  BOOST_TEST(reference[7].top > 1.5 * reference[0].top);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
