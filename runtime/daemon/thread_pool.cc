#include "runtime/daemon/thread_pool.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor::daemon {

ThreadPool::ThreadPool(unsigned width) {
  RUMOR_CHECK(width >= 1);
  for (unsigned i = 1; i < width; ++i) threads_.emplace_back([this] { serve(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

unsigned ThreadPool::width_for(std::uint64_t params) {
  constexpr std::uint64_t params_per_thread = 2'000'000;
  constexpr unsigned width_max = 8;
  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1u, width_max);
  return static_cast<unsigned>(std::clamp<std::uint64_t>(params / params_per_thread, 1, cores));
}

void ThreadPool::run(std::size_t count, void (*task)(void*, std::size_t), void* context) {
  if (threads_.empty() || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) task(context, i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    RUMOR_CHECK(busy_ == 0);
    count_ = count;
    task_ = task;
    context_ = context;
    next_.store(0, std::memory_order_relaxed);
    busy_ = static_cast<unsigned>(threads_.size());
    ++round_;
  }
  wake_.notify_all();
  work();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
}

// Takes the next task until none is left. The mutex around each round orders what the tasks read and wrote.
void ThreadPool::work() {
  for (;;) {
    const std::size_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= count_) return;
    task_(context_, i);
  }
}

void ThreadPool::serve() {
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
      if (stopping_) return;
      seen = round_;
    }
    work();
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace rumor::daemon
