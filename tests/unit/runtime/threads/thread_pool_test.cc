// The pool does each task once, whatever the number of threads, and passes on what the tasks wrote.
#include "runtime/threads/thread_pool.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

namespace rumor::daemon {

BOOST_AUTO_TEST_SUITE(thread_pool)

BOOST_AUTO_TEST_CASE(each_task_runs_once) {
  for (const unsigned width : {1u, 2u, 5u}) {
    ThreadPool pool(width);
    BOOST_TEST(pool.width() == width);
    for (const std::size_t count : {0u, 1u, 2u, 7u, 1000u}) {
      std::vector<int> times(count, 0);
      pool.each(count, [&](std::size_t i) { ++times[i]; });
      BOOST_TEST(times == std::vector<int>(count, 1), boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(rounds_follow_each_other) {
  ThreadPool pool(3);
  std::vector<std::uint64_t> values(64, 1);
  for (int round = 0; round < 2000; ++round)
    pool.each(values.size(), [&](std::size_t i) { values[i] = values[i] * 3 + i; });
  ThreadPool alone(1);
  std::vector<std::uint64_t> expected(64, 1);
  for (int round = 0; round < 2000; ++round)
    alone.each(expected.size(), [&](std::size_t i) { expected[i] = expected[i] * 3 + i; });
  BOOST_TEST(values == expected, boost::test_tools::per_element());
}

// With pauses in between threads have gone to sleep, and some wake when the round is over.
BOOST_AUTO_TEST_CASE(sleepers_miss_nothing_and_disturb_nothing) {
  ThreadPool pool(4);
  std::vector<int> times(6, 0);
  for (int round = 1; round <= 300; ++round) {
    if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(10 * (round % 40)));
    pool.each(times.size(), [&](std::size_t i) { ++times[i]; });
    BOOST_TEST(times == std::vector<int>(times.size(), round), boost::test_tools::per_element());
  }
}

// More threads than tasks: those without a share of their own help, or find nothing.
BOOST_AUTO_TEST_CASE(threads_may_outnumber_tasks) {
  ThreadPool pool(8);
  for (int round = 0; round < 500; ++round) {
    std::vector<int> times(3, 0);
    pool.each(times.size(), [&](std::size_t i) { ++times[i]; });
    BOOST_TEST(times == std::vector<int>(3, 1), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(small_models_get_one_thread) {
  const unsigned most = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  BOOST_TEST(ThreadPool::width_for(0, 0) == 1u);
  BOOST_TEST(ThreadPool::width_for(118'282, 16 * 118'282) == 1u);
  BOOST_TEST(ThreadPool::width_for(1'000'000'000, 0) == most);
  BOOST_TEST(ThreadPool::width_for(420'000, 1'000'000'000) == most);  // few weights, used often: convolutions
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::daemon
