// ThreadPool: the Parallel of real machines.
//
// Thread: run() from one thread at a time, which works along. Idle threads sleep. Memory: one stack a thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/base/parallel.h"

namespace rumor::daemon {

class ThreadPool final : public Parallel {
 public:
  // width: threads that work, the caller's included; at least 1, which makes none.
  explicit ThreadPool(unsigned width);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned width() const override { return static_cast<unsigned>(threads_.size()) + 1; }
  void run(std::size_t count, void (*task)(void*, std::size_t), void* context) override;

  // Threads worth having for a model of so many parameters: passes over small vectors are over before another
  // thread has woken.
  static unsigned width_for(std::uint64_t params);

 private:
  void serve();
  void work();

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::uint64_t round_ = 0;  // counts run() calls
  unsigned busy_ = 0;        // threads that have not finished the round
  bool stopping_ = false;
  // The round under way; written under the mutex before it begins.
  std::size_t count_ = 0;
  void (*task_)(void*, std::size_t) = nullptr;
  void* context_ = nullptr;
  std::atomic<std::size_t> next_{0};
  std::vector<std::thread> threads_;
};

}  // namespace rumor::daemon
