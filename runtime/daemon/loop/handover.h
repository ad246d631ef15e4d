// Handover: where a peer's event loop and the training loop of another program meet.
//
// The event loop leaves the plan of the next step here; the training loop, when it comes by, takes the turn, does the
// step on its own thread and gives the result back. From offer() to give() the trainer's memory belongs to the training
// loop (runtime/training/trainer.h), and to the event loop otherwise. Neither ever waits for the other, but for
// disconnect().
//
// Threads: a StepRunner's functions on the event loop's, close() where that has ended; the rest on any other.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/time.h"
#include "runtime/daemon/loop/step_runner.h"

namespace rumor::daemon {

class Handover final : public StepRunner {
 public:
  // ---- the event loop ----
  void connect(StepEvents& events, std::function<void(Job)> post) override;
  void offer(StepPlan plan) override;
  void publish(const NodeStatus& status) override;
  void event(const std::string& line) override;
  void complain(const std::string& text) override;
  // Waits for a turn that is under way.
  void disconnect() override;
  // The peer has ended, and all that there is to know about why is known.
  void close();

  // ---- the training loop ----
  // Returns the waiting plan, or nothing. The caller must return a result for it, or put the plan back.
  std::optional<StepPlan> take();
  void give(StepResult result);
  void put_back(StepPlan plan);
  // Until the peer runs, or could not.
  void wait_for_connection();
  // Until a plan waits, or the peer has ended. False: not within this time, or not before interrupt().
  bool wait_for_plan(Duration patience);
  // No wait_for_plan() waits any longer, until resume(). Any thread.
  void interrupt() { set_interrupted(true); }
  void resume() { set_interrupted(false); }
  bool interrupted() const;

  void ask_for_checkpoint() { ask(&StepEvents::on_checkpoint_asked); }
  void ask_to_finish() { ask(&StepEvents::on_finish_asked); }
  void ask_to_stop() { ask(&StepEvents::on_stop_asked); }

  bool closed() const;
  bool wait_for_close(Duration patience);
  // The newest /status; empty before the first.
  std::string status_json() const;
  // NodeStatus::waiting_for of the same.
  std::string waiting_for() const;
  // The next event; none if there is nothing new. The newest 1,000 wait.
  std::optional<std::string> take_event();
  // The last complaint; empty: none.
  std::string complaint() const;
  // The next complaint that was not taken yet.
  std::optional<std::string> take_complaint();

 private:
  void ask(void (StepEvents::*what)());
  void set_interrupted(bool interrupted);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  StepEvents* events_ = nullptr;  // null: not connected, or closed
  std::function<void(Job)> post_;
  std::optional<StepPlan> plan_;
  StepEvents::Time offered_{};  // when the last plan was
  bool turn_taken_ = false, closed_ = false, interrupted_ = false;
  std::string status_json_, waiting_for_;
  std::deque<std::string> events_waiting_;
  std::vector<std::string> complaints_;
  std::size_t complaints_taken_ = 0;
};

}  // namespace rumor::daemon
