// Applying updates to weights that are far larger than caches. All figures are ratios of this run, best of
// several; the machine may be busy.
//   decode and apply   one payload decoded and applied, against the bare loop over entries already decoded
//   merged             eight updates applied together, against the same one by one
//   with float view    the same with the view written in the same pass
//   only reading       the places of decoded entries, all loads independent: what waiting for memory alone takes,
//                      one by one and all eight in the order of places. No apply() can gain more by merging.
// All of it in large pages, as replicas ask for, and in ordinary ones. At 0.01 % no two entries share a line,
// so that merging saves no line, only (in ordinary pages) looking up its address.
//
// usage: bench_apply [PARAMS [DENSITY]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "compress/payload/apply.h"
#include "runtime/base/large_vector.h"
#include "tests/bench/measure.h"

using namespace rumor;
using namespace rumor::compress;

namespace {

constexpr std::size_t updates_count = 8;

void bare_scatter(const SparseUpdate& update, std::span<std::int32_t> weights) {
  const auto step = static_cast<std::uint32_t>(update.step);
  for (std::size_t e = 0; e < update.index.size(); ++e) {
    const auto before = static_cast<std::uint32_t>(weights[update.index[e]]);
    weights[update.index[e]] = static_cast<std::int32_t>(update.negative[e] ? before - step : before + step);
  }
}

std::uint32_t read_all(const std::vector<std::uint32_t>& places, std::span<const std::int32_t> weights) {
  std::uint32_t sum = 0;
  for (const std::uint32_t place : places) sum += static_cast<std::uint32_t>(weights[place]);
  return sum;
}

std::vector<std::uint32_t> all_places(const std::vector<SparseUpdate>& updates) {
  std::vector<std::uint32_t> places;
  for (const SparseUpdate& update : updates)
    places.insert(places.end(), update.index.begin(), update.index.end());
  std::sort(places.begin(), places.end());
  return places;
}

struct Timer {
  const char* name;
  std::function<void()> work;
  double best = 1e9;
};

// Round by round, so that a busy neighbour meets all of them. Before each, all weights are read once, as
// training does between two updates; else the few lines that a sparse update touches would still be in the
// caches.
void measure(std::vector<Timer>& timers, int rounds, std::span<const std::int32_t> weights) {
  for (int round = 0; round < rounds; ++round)
    for (Timer& timer : timers) {
      std::uint32_t sum = 0;
      for (const std::int32_t weight : weights) sum += static_cast<std::uint32_t>(weight);
      volatile std::uint32_t kept = sum;
      static_cast<void>(kept);
      timer.best = std::min(timer.best, bench::seconds_of(timer.work));
    }
}

void report(const std::vector<Timer>& timers, const std::vector<SparseUpdate>& updates, double density,
            std::uint32_t params, const char* pages) {
  std::printf("density %.4f, 8 updates of %zu entries, %u parameters, %s pages\n", density,
              updates[0].index.size(), params, pages);
  std::size_t entries = 0;
  for (const SparseUpdate& update : updates) entries += update.index.size();
  for (const Timer& timer : timers)
    std::printf("  %-34s %6.1f million entries a second, %.2f of the bare scatter\n", timer.name,
                static_cast<double>(entries) / timer.best / 1e6, timers[0].best / timer.best);
  std::printf(
      "  merged against one by one: %.2f; with view %.2f; only reading %.2f; "
      "against the bare scatter %.2f\n",
      timers[1].best / timers[3].best, timers[5].best / timers[6].best, timers[7].best / timers[8].best,
      timers[0].best / timers[3].best);
}

template <class T>
using OrdinaryVector = std::vector<T>;

template <template <class> class Vector>
void run(std::uint32_t params, double density, const char* pages) {
  const ParamLayout layout = ParamLayout::create({{"w", {params / 1024, 1024}}}).value();
  Vector<std::int32_t> weights(layout.params(), 1);
  Vector<float> values(layout.params(), 1.0f);
  std::vector<SparseUpdate> updates;
  std::vector<Bytes> payloads;
  std::vector<const SparseUpdate*> all;
  for (std::uint64_t seed = 0; seed < updates_count; ++seed)
    updates.push_back(bench::independent(layout, density, seed));
  for (const SparseUpdate& update : updates) {
    payloads.push_back(encode(layout, update));
    all.push_back(&update);
  }
  std::vector<SparseUpdate> decoded(updates_count);
  const auto decode_all = [&](std::size_t u) {
    if (!decode_into(layout, payloads[u], decoded[u])) std::abort();
  };
  const FloatView view{values, 0x1p-24f};
  const std::vector<std::uint32_t> in_order = all_places(updates);
  volatile std::uint32_t kept = 0;
  std::vector<Timer> timers{
      {"bare scatter of decoded entries",
       [&] {
         for (const auto& update : updates) bare_scatter(update, weights);
       }},
      {"apply() one by one",
       [&] {
         for (const auto* update : all) apply(layout, {&update, 1}, weights);
       }},
      {"decode and apply() one by one",
       [&] {
         for (std::size_t u = 0; u < updates_count; ++u) {
           decode_all(u);
           const SparseUpdate* update = &decoded[u];
           apply(layout, {&update, 1}, weights);
         }
       }},
      {"apply() merged", [&] { apply(layout, all, weights); }},
      {"decode all, apply() merged",
       [&] {
         std::vector<const SparseUpdate*> pointers;
         for (std::size_t u = 0; u < updates_count; ++u) {
           decode_all(u);
           pointers.push_back(&decoded[u]);
         }
         apply(layout, pointers, weights);
       }},
      {"with view, one by one",
       [&] {
         for (const auto* update : all) apply(layout, {&update, 1}, weights, view);
       }},
      {"with view, merged", [&] { apply(layout, all, weights, view); }},
      {"only reading, one by one",
       [&] {
         for (const auto& update : updates) kept = kept + read_all(update.index, weights);
       }},
      {"only reading, all in order", [&] { kept = kept + read_all(in_order, weights); }},
  };
  measure(timers, density < 0.0005 ? 25 : 9, weights);
  report(timers, updates, density, params, pages);
}

}  // namespace

int main(int argc, char** argv) {
  const auto params = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1 << 26);
  const std::vector<double> densities =
      argc > 2 ? std::vector{std::atof(argv[2])} : std::vector{0.01, 0.001, 0.0001};
  for (const double density : densities) run<LargeVector>(params, density, "large");
  for (const double density : densities) run<OrdinaryVector>(params, density, "ordinary");
}
