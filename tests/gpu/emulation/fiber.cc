#include "tests/gpu/emulation/fiber.h"

#include <cstdlib>
#include <cstring>

#include "runtime/base/sanitized.h"

// Address sanitizers want to know which stack is in use.
#if defined(RUMOR_SANITIZED_ADDRESS)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(__x86_64__)
// Saves what a called function must keep, leaves the stack pointer in *from and goes on at `to`.
extern "C" void rumor_change_stack(void** from, void* to);
asm(R"(
.text
.globl rumor_change_stack
.type rumor_change_stack, @function
rumor_change_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size rumor_change_stack, .-rumor_change_stack
)");
#endif

namespace rumor::gpu::emulation {
namespace {

Fiber* running = nullptr;
#if defined(__x86_64__)
void* program_at = nullptr;
#else
ucontext_t program_at;
#endif

#if defined(RUMOR_SANITIZED_ADDRESS)
const void* program_stack = nullptr;
std::size_t program_stack_bytes = 0;
#endif

}  // namespace

Fiber::Fiber() : stack_(std::make_unique_for_overwrite<std::uint8_t[]>(stack_bytes)) {}

void Fiber::run() noexcept {
#if defined(RUMOR_SANITIZED_ADDRESS)
  __sanitizer_finish_switch_fiber(nullptr, &program_stack, &program_stack_bytes);
#endif
  for (;;) {
    running->entry_();
    running->done_ = true;
    give_way();
  }
}

void Fiber::start(void (*entry)()) {
  entry_ = entry;
  if (done_ && made_) {  // it waits in run() for the next entry
    done_ = false;
    return;
  }
#if defined(RUMOR_SANITIZED_ADDRESS)
  if (made_) __asan_unpoison_memory_region(stack_.get(), stack_bytes);  // it was left in the middle of some function
#endif
  done_ = false;
  made_ = true;
#if defined(__x86_64__)
  // As if run() had been called and had changed the stack at once: six registers below where it returns to. A function
  // begins with the stack eight bytes off a multiple of sixteen.
  auto top = reinterpret_cast<std::uintptr_t>(stack_.get() + stack_bytes) & ~std::uintptr_t{15};
  auto* words = reinterpret_cast<void**>(top - 64);
  std::memset(words, 0, 64);
  words[6] = reinterpret_cast<void*>(&Fiber::run);
  at_ = words;
#else
  if (getcontext(&at_) != 0) std::abort();
  at_.uc_stack.ss_sp = stack_.get();
  at_.uc_stack.ss_size = stack_bytes;
  at_.uc_link = nullptr;
  makecontext(&at_, &Fiber::run, 0);
#endif
}

void Fiber::resume() {
  running = this;
#if defined(RUMOR_SANITIZED_ADDRESS)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, stack_.get(), stack_bytes);
#endif
#if defined(__x86_64__)
  rumor_change_stack(&program_at, at_);
#else
  swapcontext(&program_at, &at_);
#endif
#if defined(RUMOR_SANITIZED_ADDRESS)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void Fiber::give_way() {
#if defined(RUMOR_SANITIZED_ADDRESS)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, program_stack, program_stack_bytes);
#endif
#if defined(__x86_64__)
  rumor_change_stack(&running->at_, program_at);
#else
  swapcontext(&running->at_, &program_at);
#endif
#if defined(RUMOR_SANITIZED_ADDRESS)
  __sanitizer_finish_switch_fiber(fake, &program_stack, &program_stack_bytes);
#endif
}

}  // namespace rumor::gpu::emulation
