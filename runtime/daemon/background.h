// Threads that compute stand back from those that answer.
//
// A peer's protocol thread is mostly idle, and what it does is waited for: by the neighbours, and by its own trainer.
// Threads that compute are never idle. Where cores are short, the scheduler would let an answer wait for a turn of each
// of those.
//
// Linux counts niceness per thread; elsewhere nothing happens.
#pragma once

#if defined(__linux__)
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace rumor::daemon {

// Of the calling thread, for good.
inline void stand_back() {
#if defined(__linux__)
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 5);
#endif
}

}  // namespace rumor::daemon
