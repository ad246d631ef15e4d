// A peer that trains honestly for some steps and then turns the learning rate up, while its records say what an honest
// peer's would. For the tests of audits (audit.py, proof.py).
//
// usage: cheating_peer LISTEN SEED STATE SHARD/SHARDS HONEST_STEPS FACTOR deaf|hears KEY=VALUE...
// It runs until it is killed or put out. A deaf one does not answer charges.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/daemon/loop/built_in_training.h"
#include "runtime/daemon/loop/event_loop.h"
#include "tests/sim/cheat.h"

namespace {

using namespace rumor;

// Takes the steps on the protocol thread.
class Steps final : public daemon::StepRunner {
 public:
  explicit Steps(Trainer& trainer) : trainer_(trainer) {}

  void connect(daemon::StepEvents& events, std::function<void(Job)> post) override {
    events_ = &events;
    post_ = std::move(post);
  }
  void offer(StepPlan plan) override {
    post_([this, plan = std::move(plan)] {
      if (events_ == nullptr) return;
      const auto begin = std::chrono::steady_clock::now();
      StepResult result = trainer_.step(plan);
      events_->on_step_done(std::move(result), begin, std::chrono::steady_clock::now());
    });
  }
  void disconnect() override { events_ = nullptr; }
  void complain(const std::string& text) override { std::fprintf(stderr, "%s\n", text.c_str()); }

 private:
  Trainer& trainer_;
  daemon::StepEvents* events_ = nullptr;
  std::function<void(Job)> post_;
};

// Honest for some steps, then with the rate times `factor`.
std::unique_ptr<Trainer> cheat(std::unique_ptr<Trainer> honest, std::uint64_t steps, double factor, bool deaf) {
  auto made = std::make_unique<test::Cheat>(
      std::unique_ptr<ModelTrainer>(static_cast<ModelTrainer*>(honest.release())),
      [steps, factor, made = std::uint64_t{0}](ModelTrainer& trainer, StepPlan plan) mutable {
        if (made++ >= steps) plan.rate *= factor;
        return trainer.step(plan);
      });
  if (deaf) made->have_data_for(1);
  return made;
}

int fail(const Error& error) {
  std::fprintf(stderr, "cheating_peer: %s\n", error.text.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 8) return 2;
  daemon::PeerOptions options;
  options.config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  options.config.listen = argv[1];
  options.config.seeds = {argv[2]};
  options.state = argv[3];
  unsigned shard = 1, shards = 1;
  if (std::sscanf(argv[4], "%u/%u", &shard, &shards) != 2) return 2;
  options.shard = {.index = shard - 1, .count = shards};
  for (int i = 8; i < argc; ++i)
    if (auto set = override_run_config(options.config, argv[i]); !set) return fail(set.error());
  const auto identity = net::Identity::load(*options.state + "/identity.pem");
  if (!identity) return fail(identity.error());
  auto training = daemon::built_in_training(options, identity->id());
  if (!training) return fail(training.error());
  training->trainer = cheat(std::move(training->trainer), std::strtoull(argv[5], nullptr, 10),
                            std::strtod(argv[6], nullptr), argv[7] == std::string_view("deaf"));
  Steps steps(*training->trainer);
  const auto ended = daemon::run_embedded_peer(options, std::move(training).value(), steps);
  return ended ? ended->exit_status : fail(ended.error());
}
