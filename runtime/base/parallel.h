// Parallel: many independent tasks at once, without the caller knowing of threads.
//
// The core starts no thread. Its driver passes it one of these: the daemon and the tools a pool of threads, the
// simulator Serial. Results must not depend on the choice; every user has a test that compares.
//
// Thread: run() is called by one thread at a time; the tasks of one call may run on several, in any order.
#pragma once

#include <cstddef>
#include <type_traits>

namespace rumor {

class Parallel {
 public:
  virtual ~Parallel() = default;

  // How many tasks can run at once, the caller's thread included; at least 1. A hint for how to cut the work.
  virtual unsigned width() const = 0;

  // Calls task(context, i) once for every i in [0, count) and returns when all have returned. The caller then sees
  // everything that the tasks wrote. Tasks must not throw and must not call run().
  virtual void run(std::size_t count, void (*task)(void* context, std::size_t i), void* context) = 0;

  // The same for anything callable with an index.
  template <typename Task>
  void each(std::size_t count, Task&& task) {
    using Callable = std::remove_reference_t<Task>;
    run(
        count, [](void* context, std::size_t i) { (*static_cast<Callable*>(context))(i); },
        const_cast<void*>(static_cast<const void*>(&task)));
  }
};

// One after another, on the thread that asks.
class Serial final : public Parallel {
 public:
  unsigned width() const override { return 1; }
  void run(std::size_t count, void (*task)(void*, std::size_t), void* context) override {
    for (std::size_t i = 0; i < count; ++i) task(context, i);
  }
};

}  // namespace rumor
