// Hogwild!: one worker does what a loop over mini-batches does, to the last bit; several learn all the same.
#include "models/optimizers/hogwild.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <numeric>

#include "runtime/threads/thread_pool.h"
#include "runtime/training/model_trainer.h"

using namespace rumor;
using daemon::ThreadPool;

BOOST_AUTO_TEST_SUITE(hogwild)

namespace {

constexpr std::uint32_t batch_rows = 4, batches = 5;
constexpr double rate = 0.05, clip = 0.5;

struct Task {
  std::shared_ptr<const models::DataSet> data = models::load_data({}).value();
  models::ModelConfig config;
  std::vector<std::uint32_t> rows = std::vector<std::uint32_t>(batch_rows * batches);
  std::vector<float> weights;

  explicit Task(std::uint32_t hidden) {
    config.hidden = {hidden};
    data->describe(config);
    std::iota(rows.begin(), rows.end(), 7);
    weights = models::to_floats(models::initial_weights(*model(), 3, 24), 24);
  }
  std::unique_ptr<models::Model> model() const { return models::make_model(config).value(); }
  std::unique_ptr<models::Optimizer> optimizer(const std::string& kind) const {
    models::OptimizerConfig options;
    options.kind = kind;
    return models::make_optimizer(options, static_cast<std::uint32_t>(weights.size())).value();
  }
};

// One mini-batch after the other.
std::vector<float> in_turn(const Task& task, models::Optimizer& optimizer) {
  const auto model = task.model();
  std::vector<float> change(task.weights.size(), 0.0f), seen = task.weights, gradient(seen.size()),
                                                        delta(seen.size());
  models::BatchMemory memory;
  for (std::uint32_t b = 0; b < batches; ++b) {
    const auto rows = std::span(task.rows).subspan(b * batch_rows, batch_rows);
    model->loss_and_gradient(seen, task.data->train_batch(rows, memory), gradient);
    models::clip_by_norm(gradient, clip);
    optimizer.step(gradient, rate, delta, seen);
    for (std::size_t i = 0; i < change.size(); ++i) {
      change[i] += delta[i];
      seen[i] = task.weights[i] + change[i];
    }
  }
  return change;
}

std::vector<float> one_round(const Task& task, models::Optimizer& optimizer, std::size_t workers,
                             Parallel* parallel) {
  std::vector<std::unique_ptr<models::Model>> models;
  for (std::size_t worker = 0; worker < workers; ++worker) models.push_back(task.model());
  models::Hogwild all(std::move(models), task.data, clip);
  all.set_parallel(parallel);
  std::vector<float> change(task.weights.size(), 9.0f);
  for (int twice = 0; twice < 2; ++twice) {  // the second begins anew
    std::vector<StepRule> rules;
    for (std::uint32_t b = 0; b < batches; ++b) rules.push_back(optimizer.begin_step(rate, task.weights));
    BOOST_TEST(all.round(task.weights, task.rows, 0, rules, change) > 0);
  }
  return change;
}

RunConfig racing(std::uint32_t workers) {
  RunConfig config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  config.hogwild = workers;
  return config;
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_worker_takes_one_batch_after_the_other) {
  for (const std::uint32_t hidden : {3u, 4u}) {  // an odd number of parameters, and an even one
    const Task task(hidden);
    BOOST_TEST(task.weights.size() % 2 == hidden % 2);
    for (const char* kind : {"sgd", "momentum", "rmsprop", "adam", "adamw", "nadamw"}) {
      BOOST_TEST_CONTEXT(kind << ", " << hidden << " units") {
        const auto reference = task.optimizer(kind);
        in_turn(task, *reference);
        const std::vector<float> want = in_turn(task, *reference);
        BOOST_TEST(one_round(task, *task.optimizer(kind), 1, nullptr) == want,
                   boost::test_tools::per_element());
        ThreadPool pool(1);
        BOOST_TEST(one_round(task, *task.optimizer(kind), 3, &pool) == want,
                   boost::test_tools::per_element());
      }
    }
  }
}

// Steps that two workers take at the same moment may be lost, but not more than these.
BOOST_AUTO_TEST_CASE(several_workers_change_about_as_much) {
  const Task task(32);
  ThreadPool pool(3);
  const auto length = [](const std::vector<float>& change) {
    return std::sqrt(std::inner_product(change.begin(), change.end(), change.begin(), 0.0));
  };
  const double want = length(in_turn(task, *task.optimizer("sgd")));
  for (const char* kind : {"sgd", "rmsprop", "adamw"}) {
    const double got = length(one_round(task, *task.optimizer(kind), 3, &pool));
    BOOST_TEST(got > 0);
    if (std::string(kind) == "sgd") BOOST_TEST((got > want / 2 && got < want * 2));
  }
}

BOOST_AUTO_TEST_CASE(a_trainer_of_racing_workers_learns) {
  const RunConfig config = racing(3);
  const auto data = models::load_data(config.data).value();
  auto trainer = ModelTrainer::create(config, data, {0, 1}, 1).value();
  ThreadPool pool(3);
  trainer->set_parallel(&pool);
  auto weights = trainer->initial_weights();
  double first = 0, last = 0;
  for (std::uint64_t step = 1; step <= 100; ++step) {
    trainer->refresh(weights);
    const StepResult result = trainer->step({.rate = 0.15, .density = config.density_for(1), .period = step});
    BOOST_REQUIRE_MESSAGE(result.failure.empty(), result.failure);
    BOOST_TEST_REQUIRE(result.samples == config.batch * 8);
    BOOST_TEST_REQUIRE((compress::decode(trainer->layout(), result.payload).value() == result.update));
    const compress::SparseUpdate* const update = &result.update;
    compress::apply(trainer->layout(), {&update, 1}, weights);
    (step == 1 ? first : last) = result.loss;
  }
  BOOST_TEST(first > 2.0);
  BOOST_TEST(last < 1.0);
  BOOST_TEST(*trainer->evaluate(models::to_floats(weights, config.grid_bits), 1000).accuracy > 0.6);
}

// Workers would take the rows of a lane in any order, each at a model of its own.
BOOST_AUTO_TEST_CASE(a_model_with_a_state_is_refused) {
  RunConfig config = racing(2);
  config.data = {.kind = "text", .path = __FILE__};
  config.model.family = "lstm";
  config.model.context = 16;
  const auto data = models::load_data(config.data, config.model.context);
  BOOST_REQUIRE(data.ok());
  const auto refused = ModelTrainer::create(config, *data, {0, 1}, 1);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST(refused.error().text ==
             "optimizer.hogwild takes mini-batches in any order, and model.family = \"lstm\" has a state that goes on "
             "from one to the next; set optimizer.hogwild = 0");
}

BOOST_AUTO_TEST_CASE(a_change_that_is_not_finite_ends_the_training) {
  const RunConfig config = racing(2);
  auto trainer = ModelTrainer::create(config, models::load_data(config.data).value(), {0, 1}, 1).value();
  trainer->refresh(trainer->initial_weights());
  BOOST_TEST(!trainer->step({.rate = 1e30, .density = 0.01, .period = 1}).failure.empty());
}

BOOST_AUTO_TEST_SUITE_END()
