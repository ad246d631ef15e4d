// Real training, small: the parts together learn.
#include <boost/test/unit_test.hpp>
#include <vector>

#include "models/data/dataset.h"
#include "models/kernels/kernels.h"
#include "models/optimizers/optimizer.h"
#include "runtime/base/kernel_choice.h"
#include "runtime/base/sha256.h"

namespace rumor::models {
namespace {

struct Outcome {
  Evaluation evaluation;
  Hash256 weights;
};

// `samples` samples of the synthetic set in batches of 16, cosine schedule.
Outcome train(const std::string& optimizer_kind, double rate, std::uint32_t samples) {
  const auto data = *load_data({.kind = "synthetic", .path = "", .seed = 1});
  ModelConfig config;
  config.hidden = {64};
  config.inputs = data->inputs;
  config.classes = data->classes;
  const auto model = std::move(make_model(config)).value();
  std::vector<float> params;
  for (const std::int32_t w : initial_weights(model->layout(), 1, 24))
    params.push_back(static_cast<float>(w) * 0x1p-24f);
  const auto optimizer =
      std::move(make_optimizer({.kind = optimizer_kind}, model->layout().params())).value();
  BatchSampler sampler(data, {0, 1}, 16, 1);
  std::vector<float> gradient(params.size());
  const Schedule schedule;
  const std::uint32_t steps = samples / 16;
  for (std::uint32_t step = 0; step < steps; ++step) {
    model->loss_and_gradient(params, sampler.next(), gradient);
    optimizer->step(gradient, rate * schedule.factor(static_cast<double>(step) / steps), gradient);
    for (std::size_t i = 0; i < params.size(); ++i) params[i] += gradient[i];
  }
  const BytesView bytes(reinterpret_cast<const std::uint8_t*>(params.data()), params.size() * sizeof(float));
  return {model->evaluate(params, data->test.batch()), sha256(bytes)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(training)

BOOST_AUTO_TEST_CASE(plain_sgd_learns_the_synthetic_set) {
  const Outcome outcome = train("sgd", 0.1, 64'000);
  BOOST_TEST_MESSAGE("sgd: accuracy " << *outcome.evaluation.accuracy << " loss " << outcome.evaluation.loss);
  BOOST_TEST(*outcome.evaluation.accuracy > 0.85);
  BOOST_TEST(*outcome.evaluation.accuracy <
             0.99);  // the classes overlap: perfection would mean leaked labels
}

BOOST_AUTO_TEST_CASE(the_other_optimizers_learn_too) {
  BOOST_TEST(*train("momentum", 0.01, 32'000).evaluation.accuracy > 0.85);
  BOOST_TEST(*train("rmsprop", 0.002, 32'000).evaluation.accuracy > 0.85);
  BOOST_TEST(*train("adam", 0.002, 32'000).evaluation.accuracy > 0.85);
}

// One digest for all compilers, optimisation levels, sanitizers and processors. It changes only when the
// synthetic set, the initial weights or the order of an operation does, and then replicas of two builds would
// part ways too.
BOOST_AUTO_TEST_CASE(training_has_the_same_bits_in_every_build) {
  for (const KernelTable* table : kernel_variants()) {
    BOOST_REQUIRE(choose_kernels(table->name).ok());
    const Outcome sgd = train("sgd", 0.1, 3'200), adam = train("adam", 0.002, 3'200);
    BOOST_TEST(sgd.weights.hex() == "3a26d445225c5b25b13c58b579c6485415dcbe4582f2d57f3dd463bd700d3958",
               table->name);
    BOOST_TEST(adam.weights.hex() == "a7552c5b30ac0338027cae42a57891cda279b7d32c5b477ab3441da349a47949",
               table->name);
    BOOST_TEST(sgd.evaluation.loss == 0.96854475024076758);
  }
  BOOST_REQUIRE(choose_kernels("").ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
