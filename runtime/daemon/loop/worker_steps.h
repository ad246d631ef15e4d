// WorkerSteps: steps on a thread of the daemon.
#pragma once

#include "runtime/base/check.h"
#include "runtime/daemon/loop/step_runner.h"
#include "runtime/daemon/loop/worker.h"

namespace rumor::daemon {

class WorkerSteps final : public StepRunner {
 public:
  // Both outlive this object.
  WorkerSteps(Worker& worker, Trainer& trainer) : worker_(worker), trainer_(trainer) {}

  void connect(StepEvents& events, std::function<void(Job)>) override { events_ = &events; }
  void offer(StepPlan plan) override {
    worker_.submit(timed([this, plan = std::move(plan)] { return trainer_.step(plan); }),
                   [this](Timed<StepResult> step) {
                     RUMOR_CHECK(events_ != nullptr);
                     events_->on_step_done(std::move(step.result), step.begin, step.end);
                   });
  }
  // Ends the worker as well, since an evaluation in progress also uses the trainer. Their results are dropped: the
  // event loop has ended.
  void disconnect() override { worker_.stop(); }

 private:
  Worker& worker_;
  Trainer& trainer_;
  StepEvents* events_ = nullptr;
};

}  // namespace rumor::daemon
