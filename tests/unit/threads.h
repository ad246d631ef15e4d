// Threads for tests of what is spread over them, and threads that are none.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "runtime/base/parallel.h"

namespace rumor::test {

// Tasks on threads of their own, the last first.
class Threads final : public Parallel {
 public:
  explicit Threads(unsigned width) : width_(width) {}
  unsigned width() const override { return width_; }
  void run(std::size_t count, void (*task)(void*, std::size_t), void* context) override {
    std::atomic<std::size_t> left{count};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < width_; ++i) {
      threads.emplace_back([&] {
        for (std::size_t at = left.load(); at > 0;)
          if (left.compare_exchange_weak(at, at - 1)) task(context, at - 1);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  unsigned width_;
};

// Tasks one after another, the last first: who depends on their order, or on how many there are, shows it.
class Backwards final : public Parallel {
 public:
  explicit Backwards(unsigned width) : width_(width) {}
  unsigned width() const override { return width_; }
  void run(std::size_t count, void (*task)(void*, std::size_t), void* context) override {
    for (std::size_t i = count; i-- > 0;) task(context, i);
  }

 private:
  unsigned width_;
};

}  // namespace rumor::test
