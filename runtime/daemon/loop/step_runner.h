// StepRunner: takes the steps that the event loop requests: on a thread of the daemon (worker_steps.h), or in the
// training loop of another program (handover.h).
//
// Threads: all calls from the event loop's.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "runtime/node/node_status.h"
#include "runtime/training/trainer.h"

namespace rumor::daemon {

// Calls of a runner to the event loop, on the event loop's thread.
struct StepEvents {
  using Time = std::chrono::steady_clock::time_point;

  virtual ~StepEvents() = default;
  // The step of the last plan ran from `begin` to `end`.
  virtual void on_step_done(StepResult result, Time begin, Time end) = 0;
  virtual void on_checkpoint_asked() = 0;
  virtual void on_finish_asked() = 0;  // train no more, exchange the last updates, end
  virtual void on_stop_asked() = 0;    // end
};

class StepRunner {
 public:
  using Job = std::function<void()>;

  virtual ~StepRunner() = default;
  // `post`: runs a job on the event loop soon, from any thread. Both last until disconnect().
  virtual void connect(StepEvents& events, std::function<void(Job)> post) = 0;
  // The next step. From here to on_step_done() the trainer's memory is the runner's (runtime/training/trainer.h).
  virtual void offer(StepPlan plan) = 0;
  // When it returns, no step is in progress, and no further event follows.
  virtual void disconnect() = 0;
  // Reports the peer's status, several times a second and at the end.
  virtual void publish(const NodeStatus&) {}
  // One event of the journal, a line of JSON (runtime/daemon/state/event_journal.h).
  virtual void event(const std::string& /*line*/) {}
  // Why the peer is about to end.
  virtual void complain(const std::string&) {}
};

}  // namespace rumor::daemon
