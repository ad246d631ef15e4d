#include "runtime/bridge/swarm.h"

#include <signal.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/base/text.h"

namespace rumor::bridge {

namespace {

// After which a peer that was asked to end is sure to have ended, but for a disk that does not answer.
constexpr Duration stop_patience = 60s;
// For a moment between two of the peer's turns: they take milliseconds.
constexpr Duration show_patience = 10s;
// From here on a step is so long that a peer can do with fewer updates: step() takes half the share of the time.
constexpr std::uint32_t large_params = 64'000'000;
// While the peer ends, at least.
constexpr Duration trim_every = 500ms;

// An answer to a plan without an update.
StepResult held(const StepPlan& plan) {
  StepResult nothing;
  nothing.held = true;
  nothing.period = plan.period;
  return nothing;
}

// Gives memory that was freed back to the system. By its own rules the GNU library keeps much of what the last exchange
// has taken, for each thread, as long as the program lives.
void trim_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// Blocks all signals of this thread, and thereby of those that it starts meanwhile.
class SignalsOff {
 public:
  SignalsOff() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsOff() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsOff(const SignalsOff&) = delete;
  SignalsOff& operator=(const SignalsOff&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Swarm::~Swarm() {
  if (thread_.joinable()) end(Duration{0}, false);
}

bool Swarm::is_at_home() const { return getpid() == home_; }

// ---- the start ----

Result<bool> Swarm::start(Duration patience) {
  if (began_) return Error{Errc::usage, "this swarm was started before; make another one"};
  began_ = true;
  patience_ = patience;
  if (auto fetched = on_gpus_.fetch(); !fetched) return fetched.error();
  if (auto made = make_trainer(); !made) return made.error();
  if (overhead_ == 0) overhead_ = trainer_->layout().params() < large_params ? 0.04 : 0.02;
  {
    const SignalsOff off;
    thread_ = std::thread([this] { run(); });
  }
  handover_.wait_for_connection();
  const bool answered = wait_for_weights(patience);
  if (handover_.interrupted()) {
    end(Duration{0}, false);
    return Error{Errc::io, "interrupted before the others had answered"};
  }
  if (!answered && lacks_weights_) {
    end(Duration{0}, false);
    return Error{Errc::not_found, str("the run's weights have not come: ", handover_.waiting_for())};
  }
  if (handover_.closed()) {
    // A run that is over is none to fail with: step() says so, and leave() gives its weights.
    auto why = reason();
    if (why) return true;
    thread_.join();
    return why.error();
  }
  if (auto plan = handover_.take()) {
    trainer_->catch_up();
    trainer_->begin_with_means();
    handover_.put_back(std::move(*plan));
    if (auto stored = on_gpus_.store(); !stored) return stored.error();
  }
  last_train_ = Clock::now();
  return answered;
}

// A peer that lacks the weights waits as long as something changes: a large model takes its time.
bool Swarm::wait_for_weights(Duration patience) {
  std::string before;
  do {
    before = handover_.waiting_for();
    if (handover_.wait_for_plan(patience) || handover_.closed()) return true;
  } while (lacks_weights_ && handover_.waiting_for() != before);
  return false;
}

void Swarm::run() {
  try {
    ended_ = daemon::run_embedded_peer(options_, std::move(training_), handover_);
  } catch (const std::exception& error) {
    ended_ = Error{Errc::io, str("the peer broke off: ", error.what())};
  }
  handover_.close();
}

// ---- training ----

Result<bool> Swarm::step(std::uint32_t samples, double loss) {
  if (shows_shared_)
    return Error{Errc::usage, "the memory holds the shared weights: end that before the next step"};
  work_.steps += 1;
  work_.samples += samples;
  loss_sum_ += std::isfinite(loss) ? loss : 0;
  work_.loss = loss_sum_ / work_.steps;
  if (handover_.closed()) {
    if (auto why = reason(); !why) return why.error();
    return false;
  }
  const auto since = std::chrono::duration<double>(Clock::now() - last_train_);
  const bool may_train = std::chrono::duration<double>(train_time_).count() <= overhead_ * since.count();
  auto plan = handover_.take();
  if (!plan) return true;
  if (!may_train || plan->flush) {
    const bool is_over = plan->flush;  // leave() sends what has been learned and not sent yet
    handover_.put_back(std::move(*plan));
    return !is_over;
  }
  if (auto trained = train(*plan); !trained) return trained.error();
  return true;
}

Result<void> Swarm::train(const StepPlan& plan) {
  const Clock::time_point begin = Clock::now();
  if (std::exchange(undo_, false)) {
    trainer_->take_back();
    work_ = {};
  }
  if (auto fetched = on_gpus_.fetch(); !fetched) {
    handover_.give(held(plan));
    return fetched;
  }
  trainer_->told(work_);
  handover_.give(trainer_->step(plan));
  work_ = {};
  loss_sum_ = 0;
  auto stored = on_gpus_.store();
  last_train_ = Clock::now();
  train_time_ = last_train_ - begin;
  return stored;
}

Result<void> Swarm::checkpoint() {
  if (!options_.state) return Error{Errc::usage, "a checkpoint wants a directory; give the option state"};
  handover_.ask_for_checkpoint();
  return {};
}

std::optional<std::string> Swarm::warning() {
  if (auto complaint = handover_.take_complaint()) return complaint;
  return running() ? trainer_->take_warning() : std::nullopt;
}

Result<void> Swarm::show_shared(bool shared) {
  if (shared == shows_shared_) return {};
  const bool is_due = handover_.wait_for_plan(show_patience);
  const auto plan = is_due ? handover_.take() : std::nullopt;
  // A peer that has ended meanwhile leaves the shared weights there, as leave() would.
  if (!plan && !shared && handover_.closed()) return {};
  if (!plan)
    return Error{Errc::usage, "the peer trains no more, or waits for others: nothing can be shown; after leave() the "
                              "memory holds the shared weights anyway"};
  auto shown = on_gpus_.fetch();
  if (shown) {
    if (shared) trainer_->catch_up();
    if (shared)
      trainer_->show_shared();
    else
      trainer_->take_back();
    shows_shared_ = shared;
    shown = on_gpus_.store();
  }
  handover_.put_back(*plan);
  return shown;
}

// ---- the end ----

Result<void> Swarm::leave(Duration patience) {
  undo_ = undo_ || shows_shared_;
  end(patience, true);
  if (ended_ && ended_->ok()) {
    if (auto fetched = on_gpus_.fetch(); !fetched) return fetched;  // all other values must stay unchanged
    trainer_->load_shared();
    trainer_ = nullptr;
    (*ended_)->trainer.reset();  // the program may go on for long, and needs the memory
    trim_memory();
    if (auto stored = on_gpus_.store(); !stored) return stored;
  }
  return reason();
}

// Answers the peer's requests until it has ended.
void Swarm::end(Duration patience, bool with_memory) {
  const auto serve = [&](Duration time) {
    Clock::time_point until = Clock::now() + time;
    while (!handover_.closed()) {
      const auto left = std::chrono::duration_cast<Duration>(until - Clock::now());
      if (left <= Duration{0} || handover_.interrupted()) return;
      trim_memory();
      if (!handover_.wait_for_plan(std::min(left, trim_every))) continue;
      const auto plan = handover_.take();
      if (!plan) continue;
      const Clock::time_point begin = Clock::now();
      if (with_memory) {
        static_cast<void>(train(*plan));  // a GPU that has failed says so again when it is to have the shared weights
      } else {
        handover_.give(held(*plan));
      }
      until += Clock::now() - begin;  // patience is for others, not for this peer's own work
    }
  };
  // The last update carries the changes learned last. Between two steps its plan arrives at once.
  if (with_memory && work_.steps > 0) handover_.wait_for_plan(std::min<Duration>(patience, 1s));
  if (patience > Duration{0}) {
    handover_.ask_to_finish();
    serve(patience);
  }
  handover_.resume();
  handover_.ask_to_stop();
  serve(stop_patience);
  thread_.join();
}

// Why the peer has ended, where that is not as it should be.
Result<void> Swarm::reason() const {
  if (!ended_) return {};
  if (!ended_->ok()) return ended_->error();
  const std::string why = handover_.complaint();
  switch ((*ended_)->exit_status) {
    case 0:
      return {};
    case 3:
      return Error{Errc::mismatch,
                   why.find("initial weights") == std::string::npos
                       ? why
                       : why + "; make the model from the same seed, such as torch.manual_seed(1), or load the same "
                               "file, or set weights='swarm' to take the run's weights"};
    case 4:
      return Error{Errc::diverged, why};
    default:
      return Error{Errc::not_finite, why.empty() ? "the peer has failed" : why};
  }
}

}  // namespace rumor::bridge
