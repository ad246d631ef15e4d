// Handover: where a peer's event loop and the training loop of another program meet.
//
// The event loop leaves the plan of the next step here; the training loop, when it comes by, takes the turn, does the
// step on its own thread and gives the result back. From offer() to give() the trainer's memory belongs to the training
// loop (runtime/trainer.h), and to the event loop otherwise. Neither ever waits for the other, but for disconnect().
//
// Threads: connect, offer, publish, complain and disconnect on the event loop's; the rest on any other.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/base/time.h"
#include "runtime/trainer.h"

namespace rumor::daemon {

// What the other program asks of the event loop.
struct HandoverEvents {
  virtual ~HandoverEvents() = default;
  virtual void on_step_given(StepResult result) = 0;
  virtual void on_checkpoint_asked() = 0;
  virtual void on_finish_asked() = 0;  // train no more, settle with the neighbours, end
  virtual void on_stop_asked() = 0;    // end
};

class Handover {
 public:
  // ---- the event loop ----
  // `post`: runs a job on the event loop soon, from any thread.
  using Job = std::function<void()>;
  void connect(HandoverEvents& events, std::function<void(Job)> post);
  void offer(StepPlan plan);
  void publish(std::string status_json);
  // Why the peer is about to end.
  void complain(std::string text);
  // Nothing is passed on from now on. Waits for a turn that is under way.
  void disconnect();
  // The peer has ended, and all that there is to know about why is known.
  void close();

  // ---- the training loop ----
  // The plan that waits; nothing when none does. Who gets one gives back a result, or puts the plan back.
  std::optional<StepPlan> take();
  void give(StepResult result);
  void put_back(StepPlan plan);
  // Until the peer runs, or could not.
  void wait_for_connection();
  // Until a plan waits, or the peer has ended. False: not within this time.
  bool wait_for_plan(Duration patience);

  void ask_for_checkpoint() { ask(&HandoverEvents::on_checkpoint_asked); }
  void ask_to_finish() { ask(&HandoverEvents::on_finish_asked); }
  void ask_to_stop() { ask(&HandoverEvents::on_stop_asked); }

  bool closed() const;
  bool wait_for_close(Duration patience);
  // The newest /status; empty before the first.
  std::string status_json() const;
  // The last complaint; empty: none.
  std::string complaint() const;

 private:
  void ask(void (HandoverEvents::*what)());

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  HandoverEvents* events_ = nullptr;  // null: not connected, or closed
  std::function<void(Job)> post_;
  std::optional<StepPlan> plan_;
  bool turn_taken_ = false, closed_ = false;
  std::string status_json_, complaint_;
};

}  // namespace rumor::daemon
