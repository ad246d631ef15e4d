#include "runtime/daemon/loop/handover.h"

#include <memory>
#include <utility>

#include "runtime/daemon/status/figure_text.h"

namespace rumor::daemon {

namespace {
constexpr std::size_t waiting_events_max = 1000;
}

void Handover::connect(StepEvents& events, std::function<void(Job)> post) {
  const std::lock_guard lock(mutex_);
  events_ = &events;
  post_ = std::move(post);
  changed_.notify_all();
}

void Handover::offer(StepPlan plan) {
  const std::lock_guard lock(mutex_);
  plan_ = std::move(plan);
  offered_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void Handover::publish(const NodeStatus& status) {
  std::string text = daemon::status_json(status);
  const std::lock_guard lock(mutex_);
  status_json_.swap(text);
  waiting_for_ = status.waiting_for;
}

void Handover::event(const std::string& line) {
  const std::lock_guard lock(mutex_);
  events_waiting_.push_back(line);
  if (events_waiting_.size() > waiting_events_max) events_waiting_.pop_front();
}

std::optional<std::string> Handover::take_event() {
  const std::lock_guard lock(mutex_);
  if (events_waiting_.empty()) return std::nullopt;
  std::string line = std::move(events_waiting_.front());
  events_waiting_.pop_front();
  return line;
}

void Handover::complain(const std::string& text) {
  const std::lock_guard lock(mutex_);
  complaints_.push_back(text);
}

void Handover::disconnect() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !turn_taken_; });
  plan_.reset();
  events_ = nullptr;
  post_ = nullptr;
}

void Handover::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

std::optional<StepPlan> Handover::take() {
  const std::lock_guard lock(mutex_);
  if (!plan_) return std::nullopt;
  turn_taken_ = true;
  return std::exchange(plan_, std::nullopt);
}

void Handover::give(StepResult result) {
  const std::lock_guard lock(mutex_);
  turn_taken_ = false;
  changed_.notify_all();
  if (events_ == nullptr) return;
  auto shared = std::make_shared<StepResult>(std::move(result));
  // The other program's step too: it comes by when it has made one.
  post_([events = events_, shared, begin = offered_, end = std::chrono::steady_clock::now()] {
    events->on_step_done(std::move(*shared), begin, end);
  });
}

void Handover::put_back(StepPlan plan) {
  const std::lock_guard lock(mutex_);
  turn_taken_ = false;
  plan_ = std::move(plan);
  changed_.notify_all();
}

void Handover::wait_for_connection() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return events_ != nullptr || closed_; });
}

bool Handover::wait_for_plan(Duration patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return plan_.has_value() || closed_ || interrupted_; });
  return plan_.has_value() || closed_;
}

void Handover::set_interrupted(bool interrupted) {
  const std::lock_guard lock(mutex_);
  interrupted_ = interrupted;
  changed_.notify_all();
}

bool Handover::interrupted() const {
  const std::lock_guard lock(mutex_);
  return interrupted_;
}

void Handover::ask(void (StepEvents::*what)()) {
  const std::lock_guard lock(mutex_);
  if (events_ != nullptr) post_([events = events_, what] { (events->*what)(); });
}

bool Handover::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

bool Handover::wait_for_close(Duration patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [this] { return closed_; });
}

std::string Handover::complaint() const {
  const std::lock_guard lock(mutex_);
  return complaints_.empty() ? std::string() : complaints_.back();
}

std::optional<std::string> Handover::take_complaint() {
  const std::lock_guard lock(mutex_);
  if (complaints_taken_ == complaints_.size()) return std::nullopt;
  return complaints_[complaints_taken_++];
}

std::string Handover::status_json() const {
  const std::lock_guard lock(mutex_);
  return status_json_;
}

std::string Handover::waiting_for() const {
  const std::lock_guard lock(mutex_);
  return waiting_for_;
}

}  // namespace rumor::daemon
