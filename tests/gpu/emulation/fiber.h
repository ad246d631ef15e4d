// Fiber: a function with a stack of its own that runs until it gives way, and goes on where it was when it is resumed.
//
// Made for tests/gpu/emulation/emulation.cc: hundreds at a time, millions of changes a second. On x86-64 a change
// saves seven registers; elsewhere it is swapcontext().
//
// Thread: all fibers of a program on one thread. Memory: stack_bytes each, reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace rumor::gpu::emulation {

class Fiber {
 public:
  static constexpr std::size_t stack_bytes = 128 << 10;

  Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // The next resume() begins entry(). What has not come to its end is forgotten.
  void start(void (*entry)());
  // Runs it until it gives way or its function returns. Called by the program, not by a fiber.
  void resume();
  // Called by the running fiber: back to who resumed it.
  static void give_way();
  bool done() const { return done_; }

 private:
  static void run() noexcept;

  std::unique_ptr<std::uint8_t[]> stack_;
  void (*entry_)() = nullptr;
  bool made_ = false, done_ = true;
#if defined(__x86_64__)
  void* at_ = nullptr;  // its stack pointer while it does not run
#else
  ucontext_t at_;
#endif
};

}  // namespace rumor::gpu::emulation
