// Time to hand a round of tasks to a pool of threads, by the time since the round before. Printed: microseconds
// beyond the tasks' own, median and 90th percentile. While threads still spin for work, the cost is a handful of
// cache misses; afterwards it is a wake-up by the system. These figures set how long ThreadPool spins.
//
// usage: bench_pool [THREADS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/threads/thread_pool.h"
#include "tests/bench/measure.h"

using namespace rumor;

namespace {

void spin(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

void line(daemon::ThreadPool& pool, double gap, double task) {
  constexpr std::size_t rounds = 2000;
  std::vector<double> beyond;
  for (std::size_t round = 0; round < rounds; ++round) {
    spin(gap);
    beyond.push_back(bench::seconds_of([&] { pool.each(pool.width(), [&](std::size_t) { spin(task); }); }) - task);
  }
  std::sort(beyond.begin(), beyond.end());
  std::printf("%u threads, %3.0f us after the last round, tasks of %2.0f us: %5.1f us more, 90th %5.1f\n",
              pool.width(), 1e6 * gap, 1e6 * task, 1e6 * beyond[rounds / 2], 1e6 * beyond[rounds * 9 / 10]);
}

}  // namespace

int main(int argc, char** argv) {
  daemon::ThreadPool pool(argc > 1 ? static_cast<unsigned>(std::max(std::atoi(argv[1]), 1)) : 2);
  for (const double gap : {0.0, 10e-6, 20e-6, 40e-6, 80e-6, 200e-6})
    for (const double task : {0.0, 60e-6}) line(pool, gap, task);
}
