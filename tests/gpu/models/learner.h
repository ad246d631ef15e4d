// Trainers with what they train, as a node has them, and small run files for tests of trainers on a device.
#pragma once

#include <memory>
#include <string>

#include "runtime/training/device_trainer.h"
#include "runtime/training/model_trainer.h"
#include "tests/gpu/target.h"
#include "tests/unit/models/scratch.h"

namespace rumor::gpu {

inline RunConfig small_run(const char* optimizer) {
  RunConfig config;
  config.model.hidden = {8};
  config.batch = 4;
  config.optimizer.kind = optimizer;
  return config;
}

// An MLP with a hidden matrix, which Muon needs.
inline RunConfig muon_run() {
  RunConfig config = small_run("muon");
  config.model.hidden = {9, 6};
  return config;
}

// A GPT of bytes of a text that lies in a file as long as this lives.
struct SmallText {
  models::Scratch scratch;
  RunConfig config;

  explicit SmallText(const char* optimizer = "adamw") {
    std::string text;
    Prng prng(3);
    for (int i = 0; i < 2000; ++i) text += "etaoin srhldcu"[prng.below(14)];
    scratch.write("a.txt", text);
    config.data.kind = "text";
    config.data.path = scratch / "a.txt";
    config.model.family = "gpt";
    config.model.context = 8;
    config.model.layers = 1;
    config.model.heads = 2;
    config.model.embedding = 8;
    config.batch = 2;
    config.optimizer.kind = optimizer;
  }
};

inline std::shared_ptr<const models::DataSet> data_of(const RunConfig& config) {
  return models::load_data(config.data, config.model.context).value();
}

inline Result<std::unique_ptr<DeviceTrainer>> make_device_trainer(const RunConfig& config, std::uint64_t order = 0,
                                                                  std::size_t gpus = 1) {
  return DeviceTrainer::create(target_group(gpus, order), config, data_of(config), {0, 1}, 7);
}

inline std::unique_ptr<ModelTrainer> make_model_trainer(const RunConfig& config) {
  return ModelTrainer::create(config, data_of(config), {0, 1}, 7).value();
}

// A trainer and what it trains, as a node has them.
struct Learner {
  std::unique_ptr<Trainer> trainer;
  Replica replica;
  std::uint64_t period = 0;

  explicit Learner(std::unique_ptr<Trainer> made)
      : trainer(std::move(made)), replica(RunId{}, trainer->layout(), trainer->initial_weights()) {}

  StepResult step(double density) {
    return step(StepPlan{.rate = 0.02, .density = density, .survey = true});
  }
  StepResult step(StepPlan plan) {
    trainer->follow(replica);
    plan.period = ++period;
    return trainer->step(plan);
  }
  void take(const StepResult& step, std::uint64_t seq) {
    gossip::UpdateHeader header;
    header.key.seq = seq;
    replica.apply_own(header, step.update, std::make_shared<const Bytes>(step.payload));
  }
};

}  // namespace rumor::gpu
