// Worker: one thread that does jobs in order and returns each result to the event loop. It runs at lower priority
// (runtime/threads/background.h).
//
// Thread: submit() from the event loop's thread; a job runs on the worker's; its continuation on the event
// loop's. The job's captures pass from one thread to the other with it: nothing is shared meanwhile.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "runtime/threads/background.h"

namespace rumor::daemon {

// The result of a job, and when it ran.
template <class T>
struct Timed {
  std::chrono::steady_clock::time_point begin, end;
  T result;
};

template <class Job>
auto timed(Job job) {
  return [job = std::move(job)] {
    const auto begin = std::chrono::steady_clock::now();
    auto result = job();
    return Timed<decltype(job())>{begin, std::chrono::steady_clock::now(), std::move(result)};
  };
}

class Worker {
 public:
  explicit Worker(asio::io_context& loop)
      : loop_(loop), guard_(asio::make_work_guard(queue_)), thread_([this] {
          lower_priority();
          queue_.run();
        }) {}

  ~Worker() { stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Waits for the job under way, and drops the rest: none runs any more.
  void stop() {
    guard_.reset();
    queue_.stop();
    if (thread_.joinable()) thread_.join();
  }

  // job() -> result on the worker, then done(result) on the event loop.
  template <class Job, class Done>
  void submit(Job job, Done done) {
    asio::post(queue_, [this, job = std::move(job), done = std::move(done)]() mutable {
      auto result = std::make_shared<decltype(job())>(job());
      asio::post(loop_, [result, done = std::move(done)]() mutable { done(std::move(*result)); });
    });
  }

 private:
  asio::io_context& loop_;
  asio::io_context queue_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::thread thread_;
};

}  // namespace rumor::daemon
