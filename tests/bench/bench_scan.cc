// Speed of the scan against what memory allows, in the same run: a bare `r += u` over vectors of the same
// size, as the compiler vectorises it. Rounds of both alternate and the median of their ratios counts, since
// machines are shared. Ratios above 1 are faster than the bare loop.
//   scan     absorb(): the pass, exact selection, what was sent leaves the residual
//   encode   the same and encode()
//   bf16     absorb_bf16(), against the same loop
//   fused    absorb_step() against the optimizer's step followed by absorb()
// Once where each finds in the caches what it left there itself, and once ("swept") after 32 MB of other
// memory, as when a training step comes between. And in nanoseconds an entry: the bare loop, what the scan
// takes beyond it, and encode(). An entry costs much the same for all sizes, so ratios at 1 % follow from how
// fast the bare loop finds its vectors.
//
// usage: bench_scan [PARAMS_IN_MILLIONS [THREADS_MAX [DENSITY]]]
// That size alone; with a density only that, with the fastest kernels, and no fused lines.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "compress/select/compressor.h"
#include "compress/select/scan_kernels.h"
#include "models/optimizers/optimizer.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/prng.h"
#include "runtime/threads/thread_pool.h"
#include "tests/bench/measure.h"

using namespace rumor;

namespace {

// The contents of the caches when a work starts: its own data, or other data, as after a training step.
enum class Caches { own, swept };

void sweep() {
  static const std::vector<std::uint64_t> swept(4 << 20, 1);
  std::uint64_t sum = 0;
  for (const std::uint64_t word : swept) sum += word;
  volatile std::uint64_t kept = sum;
  static_cast<void>(kept);
}

// How many times as fast as the first each of `works` is: the median over rounds in which all take turns, so
// that what disturbs the machine disturbs both sides. The first number is the least seconds of the first
// work. Large sizes get fewer rounds.
std::vector<double> compare(Caches caches, const std::vector<std::function<void()>>& works) {
  constexpr int rounds_min = 9, rounds_max = 400;
  constexpr double seconds_max = 1.5;
  std::vector<std::vector<double>> ratios(works.size());
  double spent = 0;
  const auto timed = [&](const std::function<void()>& work) {
    spent += bench::seconds_of(caches == Caches::own ? work : sweep);
    const double seconds = bench::seconds_of(work);
    spent += seconds;
    return seconds;
  };
  for (int round = 0; round < rounds_min || (round < rounds_max && spent < seconds_max); ++round) {
    const double first = timed(works.front());
    ratios[0].push_back(first);
    for (std::size_t w = 1; w < works.size(); ++w) ratios[w].push_back(first / timed(works[w]));
  }
  std::vector<double> result;
  for (std::vector<double>& list : ratios) {
    std::sort(list.begin(), list.end());
    result.push_back(result.empty() ? list.front() : list[list.size() / 2]);
  }
  return result;
}

// A bell shape of 24 bits: the sum of six uniform numbers, the same everywhere.
LargeVector<float> changes(std::size_t count, std::uint64_t seed) {
  Prng prng(seed);
  LargeVector<float> values(count);
  for (float& value : values) {
    const std::uint64_t a = prng.next(), b = prng.next();
    std::int64_t sum = -3 * (1 << 20);
    for (int shift = 0; shift < 60; shift += 20)
      sum += static_cast<std::int64_t>(((a >> shift) & 0xfffff) + ((b >> shift) & 0xfffff));
    value = static_cast<float>(sum) * 0x1p-36f;
  }
  return values;
}

void bare(Parallel& parallel, LargeVector<float>& sum, const LargeVector<float>& delta) {
  constexpr std::size_t piece = 1 << 18;
  parallel.each((sum.size() + piece - 1) / piece, [&](std::size_t p) {
    float* r = sum.data();
    const float* u = delta.data();
    const std::size_t end = std::min(sum.size(), (p + 1) * piece);
    for (std::size_t i = p * piece; i < end; ++i) r[i] += u[i];
  });
}

struct Setting {
  ParamLayout layout;
  Parallel& parallel;
  const compress::ScanKernels& kernels;
  std::vector<double> densities;
  int warm;  // rounds until thresholds are steady
};

void absorb_or_die(const Result<void>& result) {
  if (!result) std::abort();
}

void scan_lines(const Setting& s, const LargeVector<float>& delta) {
  LargeVector<float> sum(delta.size(), 0.0f);
  std::vector<std::uint16_t> halves(delta.size());
  for (std::size_t i = 0; i < delta.size(); ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, &delta[i], sizeof bits);
    halves[i] = static_cast<std::uint16_t>(bits >> 16);
  }
  for (const double density : s.densities) {
    compress::Compressor compressor(s.layout, {.density = density, .kernels = &s.kernels});
    compress::Compressor halved(s.layout, {.density = density, .kernels = &s.kernels});
    compressor.set_parallel(&s.parallel);
    halved.set_parallel(&s.parallel);
    compress::SparseUpdate update;
    Bytes payload;
    const std::function<void()> scan = [&] { absorb_or_die(compressor.absorb(delta, update)); };
    const std::function<void()> encode = [&] {
      payload = compress::encode(s.layout, update, {.parallel = &s.parallel, .rice = nullptr});
    };
    const std::function<void()> both = [&] { scan(), encode(); };
    const std::function<void()> bf16 = [&] { absorb_or_die(halved.absorb_bf16(halves, update)); };
    for (int warm = 0; warm < s.warm; ++warm) scan(), bf16();
    const std::vector<std::function<void()>> works{[&] { bare(s.parallel, sum, delta); }, scan, both, bf16,
                                                   encode};
    const auto times = compare(Caches::own, works), swept = compare(Caches::swept, works);
    const double bare_ns = 1e9 * times[0] / static_cast<double>(update.index.size());
    std::printf(
        "  %-8s %u thread%s density %.4f: bare %.2f billion/s; scan %.2f encode %.2f bf16 %.2f; "
        "swept %.2f: %.2f %.2f %.2f; ns an entry: bare %.1f scan + %.1f encode + %.1f\n",
        s.kernels.name, s.parallel.width(), s.parallel.width() == 1 ? " " : "s", density,
        static_cast<double>(delta.size()) / times[0] / 1e9, times[1], times[2], times[3],
        static_cast<double>(delta.size()) / swept[0] / 1e9, swept[1], swept[2], swept[3], bare_ns,
        bare_ns / times[1] - bare_ns, bare_ns / times[4]);
    std::fflush(stdout);
  }
}

// One after the other writes the delta and reads it again; the fused pass does neither.
void fused_lines(const Setting& s, const LargeVector<float>& gradient) {
  for (const char* kind : {"sgd", "momentum", "rmsprop", "adam"}) {
    const models::OptimizerConfig config{.kind = kind};
    auto apart = models::make_optimizer(config, s.layout.params()).value();
    auto inside = models::make_optimizer(config, s.layout.params()).value();
    compress::Compressor first(s.layout, {.density = 0.001}), second(s.layout, {.density = 0.001});
    first.set_parallel(&s.parallel);
    second.set_parallel(&s.parallel);
    compress::SparseUpdate update;
    LargeVector<float> delta = gradient;
    const std::function<void()> both = [&] {
      apart->step(gradient, 0.01, delta);
      absorb_or_die(first.absorb(delta, update));
    };
    const std::function<void()> fused = [&] {
      absorb_or_die(second.absorb_step(inside->begin_step(0.01), gradient, update));
    };
    for (int warm = 0; warm < s.warm; ++warm) both(), fused();
    const auto times = compare(Caches::own, {both, fused});
    std::printf("  %s %u thread%s: fused %.2f times as fast as step and absorb\n", kind, s.parallel.width(),
                s.parallel.width() == 1 ? "" : "s", times[1]);
    std::fflush(stdout);
  }
}

// density: 0 for all.
void size_lines(std::uint32_t params, unsigned threads_max, double density) {
  const ParamLayout layout = ParamLayout::create({{"w", {params / 1024, 1024}}}).value();
  const LargeVector<float> delta = changes(layout.params(), 1);
  std::printf("%u parameters\n", layout.params());
  const std::vector<double> densities = density > 0 ? std::vector{density} : std::vector{0.0001, 0.001, 0.01};
  const int warm = params > 4'000'000 ? 12 : 25;
  for (unsigned threads = 1; threads <= threads_max; ++threads) {
    daemon::ThreadPool parallel(threads);
    std::vector<const compress::ScanKernels*> sets{&compress::scan_kernels()};
    if (threads == 1 && density == 0)
      sets = {compress::scan_kernels_avx512(), compress::scan_kernels_avx2(),
              &compress::scan_kernels_portable};
    for (const compress::ScanKernels* set : sets)
      if (set != nullptr) scan_lines({layout, parallel, *set, densities, warm}, delta);
    if (density == 0) fused_lines({layout, parallel, compress::scan_kernels(), densities, warm}, delta);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int millions = argc > 1 ? std::atoi(argv[1]) : 32;
  const unsigned threads = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 2;
  const double density = argc > 3 ? std::atof(argv[3]) : 0;
  size_lines(static_cast<std::uint32_t>(millions) << 20, threads, density);
  if (argc > 1) return 0;
  size_lines(1u << 20, threads, density);
  size_lines(1u << 17, threads, density);
}
