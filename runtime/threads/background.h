// Threads that compute run at a lower priority than those that answer.
//
// A peer's protocol thread is mostly idle, and others wait for it: the neighbours, and its own trainer.
// Threads that compute are never idle. Where cores are short, the scheduler would let an answer wait for a turn of each
// of those.
//
// Linux counts niceness (nice(2)) per thread; elsewhere nothing happens.
#pragma once

#if defined(__linux__)
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace rumor::daemon {

inline constexpr int background_niceness = 5;  // more than that of the process

// Lowers the priority of the calling thread, for good.
inline void lower_priority() {
#if defined(__linux__)
  const auto self = static_cast<id_t>(gettid());
  setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + background_niceness);
#endif
}

}  // namespace rumor::daemon
