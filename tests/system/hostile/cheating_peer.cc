// A peer that trains honestly for some steps and then turns the learning rate up, while its records say what an honest
// peer's would. For the test of audits (audit.py).
//
// usage: cheating_peer LISTEN SEED STATE SHARD/SHARDS HONEST_STEPS FACTOR KEY=VALUE...    until it is killed or put out
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/daemon/loop/built_in_training.h"
#include "runtime/daemon/loop/event_loop.h"

namespace {

using namespace rumor;

class CheatingSteps final : public daemon::StepRunner {
 public:
  CheatingSteps(Trainer& trainer, std::uint64_t honest, double factor)
      : trainer_(trainer), honest_(honest), factor_(factor) {}

  void connect(daemon::StepEvents& events, std::function<void(Job)> post) override {
    events_ = &events;
    post_ = std::move(post);
  }
  void offer(StepPlan plan) override {
    post_([this, plan = std::move(plan)]() mutable {
      if (events_ == nullptr) return;
      if (steps_++ >= honest_) plan.rate *= factor_;
      const auto begin = std::chrono::steady_clock::now();
      StepResult result = trainer_.step(plan);
      events_->on_step_done(std::move(result), begin, std::chrono::steady_clock::now());
    });
  }
  void disconnect() override { events_ = nullptr; }
  void complain(const std::string& text) override { std::fprintf(stderr, "%s\n", text.c_str()); }

 private:
  Trainer& trainer_;
  std::uint64_t honest_, steps_ = 0;
  double factor_;
  daemon::StepEvents* events_ = nullptr;
  std::function<void(Job)> post_;
};

int fail(const Error& error) {
  std::fprintf(stderr, "cheating_peer: %s\n", error.text.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  daemon::PeerOptions options;
  options.config = parse_run_config(preset_text("synthetic"), "synthetic").value();
  options.config.listen = argv[1];
  options.config.seeds = {argv[2]};
  options.state = argv[3];
  unsigned shard = 1, shards = 1;
  if (std::sscanf(argv[4], "%u/%u", &shard, &shards) != 2) return 2;
  options.shard = {.index = shard - 1, .count = shards};
  for (int i = 7; i < argc; ++i)
    if (auto set = override_run_config(options.config, argv[i]); !set) return fail(set.error());
  const auto identity = net::Identity::load(*options.state + "/identity.pem");
  if (!identity) return fail(identity.error());
  auto training = daemon::built_in_training(options, identity->id());
  if (!training) return fail(training.error());
  CheatingSteps steps(*training->trainer, std::strtoull(argv[5], nullptr, 10), std::strtod(argv[6], nullptr));
  const auto ended = daemon::run_embedded_peer(options, std::move(training).value(), steps);
  return ended ? ended->exit_status : fail(ended.error());
}
