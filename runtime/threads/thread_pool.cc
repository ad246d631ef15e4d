#include "runtime/threads/thread_pool.h"

#include <algorithm>
#include <chrono>

#include "runtime/base/check.h"
#include "runtime/threads/background.h"

namespace rumor::daemon {
namespace {

// How long one thread looks out for another before it goes to sleep: about what waking it takes.
constexpr std::chrono::microseconds look_out_max{60};

// Tells the processor that this thread waits for another.
inline void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Until what is looked for has come, but not for long.
template <typename Come>
void look_out(const Come& come) {
  constexpr int looks_a_time = 16;  // the clock is not for nothing
  const auto end = std::chrono::steady_clock::now() + look_out_max;
  do {
    for (int look = 0; look < looks_a_time; ++look) {
      if (come()) return;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
}

}  // namespace

ThreadPool::ThreadPool(unsigned width) : shares_(new Share[width]) {
  RUMOR_CHECK(width >= 1);
  for (unsigned i = 1; i < width; ++i) threads_.emplace_back([this, i] { serve(i); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    rounds_.fetch_add(1, std::memory_order_relaxed);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

unsigned ThreadPool::width_for(std::uint64_t params, std::uint64_t multiply_adds) {
  constexpr std::uint64_t params_per_thread = 2'000'000, multiply_adds_per_thread = 20'000'000;
  constexpr unsigned width_max = 8;
  const unsigned cores = std::clamp(std::thread::hardware_concurrency(), 1u, width_max);
  const std::uint64_t worth = std::max(params / params_per_thread, multiply_adds / multiply_adds_per_thread);
  return static_cast<unsigned>(std::clamp<std::uint64_t>(worth, 1, cores));
}

void ThreadPool::run(std::size_t count, void (*task)(void*, std::size_t), void* context) {
  if (threads_.empty() || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) task(context, i);
    return;
  }
  const Round round{.count = count, .task = task, .context = context};
  {
    const std::lock_guard lock(mutex_);
    RUMOR_CHECK(!open_);
    round_ = round;
    for (std::size_t i = 0; i < width(); ++i) shares_[i].next.store(0, std::memory_order_relaxed);
    open_ = true;
    rounds_.fetch_add(1, std::memory_order_relaxed);
  }
  wake_.notify_all();
  work(round, 0);
  {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }
  look_out([this] { return busy_.load(std::memory_order_relaxed) == 0; });
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_.load(std::memory_order_relaxed) == 0; });
}

// Takes the next task of its own share, then of the others', until none is left. The mutex around each round
// orders what the tasks read and wrote.
void ThreadPool::work(const Round& round, std::size_t self) {
  for (std::size_t turn = 0; turn < width(); ++turn) {
    const std::size_t share = (self + turn) % width();
    const std::size_t begin = round.count * share / width(), end = round.count * (share + 1) / width();
    for (;;) {
      const std::size_t i = begin + shares_[share].next.fetch_add(1, std::memory_order_relaxed);
      if (i >= end) break;
      round.task(round.context, i);
    }
  }
}

void ThreadPool::serve(std::size_t self) {
  lower_priority();
  std::uint64_t seen = 0;
  for (;;) {
    look_out([&] { return rounds_.load(std::memory_order_relaxed) != seen; });
    Round round;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return rounds_.load(std::memory_order_relaxed) != seen; });
      if (stopping_) return;
      seen = rounds_.load(std::memory_order_relaxed);
      if (!open_) continue;
      round = round_;
      busy_.fetch_add(1, std::memory_order_relaxed);
    }
    work(round, self);
    const std::lock_guard lock(mutex_);
    if (busy_.fetch_sub(1, std::memory_order_relaxed) == 1) done_.notify_one();
  }
}

}  // namespace rumor::daemon
