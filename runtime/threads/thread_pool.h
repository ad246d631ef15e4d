// ThreadPool: the Parallel of real machines.
//
// Thread: run() from one thread at a time, which works along. Idle threads look out for the next round for
// some sixty microseconds, since the phases of one pass follow each other closely and waking a thread takes as
// long (tests/bench/bench_pool.cc); then they sleep. A round is over when its tasks are: threads that wake too
// late are not waited for. Each thread begins with its own share of the tasks, the same in each round of so
// many, since what a task works with is near the thread that did it last; then it helps the others. Where cores are
// short they run at a lower priority (runtime/threads/background.h). Memory: one stack a thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
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

  // Threads worth having for a model of so many parameters and multiply-adds in a forward pass: what is small is over
  // before another thread has woken.
  static unsigned width_for(std::uint64_t params, std::uint64_t multiply_adds);

 private:
  // The tasks of one run() call.
  struct Round {
    std::size_t count = 0;
    void (*task)(void*, std::size_t) = nullptr;
    void* context = nullptr;
  };

  // How far one thread's share has been given out, in a cache line of its own.
  struct alignas(64) Share {
    std::atomic<std::size_t> next{0};
  };

  void serve(std::size_t self);
  void work(const Round& round, std::size_t self);

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  bool stopping_ = false;
  bool open_ = false;  // tasks of round_ may be left
  Round round_;        // the one under way
  // Changed under the mutex, so that sleepers miss nothing; read without it by those who look out.
  std::atomic<std::uint64_t> rounds_{0};  // that have begun; and one for the end
  std::atomic<unsigned> busy_{0};         // threads that take part, the caller apart
  std::unique_ptr<Share[]> shares_;       // of each thread, the caller's first
  std::vector<std::thread> threads_;
};

}  // namespace rumor::daemon
