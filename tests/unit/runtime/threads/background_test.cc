// Threads that compute get what cores are left; the thread that answers stays where it was.
#include "runtime/threads/background.h"

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <atomic>
#include <boost/test/unit_test.hpp>

#include "runtime/daemon/loop/worker.h"
#include "runtime/threads/thread_pool.h"

#if defined(__linux__)

namespace rumor::daemon {

BOOST_AUTO_TEST_SUITE(background)

namespace {
int niceness() { return getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())); }
}  // namespace

BOOST_AUTO_TEST_CASE(who_computes_stands_back_and_nobody_else) {
  const int before = niceness();
  const int behind = std::min(before + background_niceness, 19);
  asio::io_context io;
  const auto more_to_come = asio::make_work_guard(io);
  Worker worker(io);
  int of_worker = 0;
  worker.submit([] { return niceness(); }, [&](int seen) { of_worker = seen; });
  io.run_one();
  BOOST_TEST(of_worker == behind);

  ThreadPool pool(3);
  const auto caller = gettid();
  std::atomic<int> wrong = 0;
  for (int round = 0; round < 100; ++round)
    pool.each(16, [&](std::size_t) { wrong += niceness() != (gettid() == caller ? before : behind) ? 1 : 0; });
  BOOST_TEST(wrong == 0);
  BOOST_TEST(niceness() == before);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::daemon

#endif
