// Size and speed of update payloads, by density. Speeds are best of several on one core; where two figures
// are compared, both come from this run.
//   size     payload bits against the bound, independent positions, over a sweep of densities (worst and
//   mean) speed    encode and decode of one update, million entries a second, by kernel set
// usage: bench_codec [size | speed]...
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "compress/payload/crc32c.h"
#include "compress/payload/update.h"
#include "compress/statistics.h"
#include "tests/bench/measure.h"

using namespace rumor;
using namespace rumor::compress;

namespace {

// Independent positions: about `entries` of them at this density in one tensor.
SparseUpdate some_entries(ParamLayout& layout, double density, std::uint32_t entries, std::uint64_t seed) {
  const double params = std::min(2147483646.0, entries / density);
  layout = ParamLayout::create({{"w", {static_cast<std::uint32_t>(params)}}}).value();
  return bench::independent(layout, density, seed);
}

double times_bound(const ParamLayout& layout, const SparseUpdate& update) {
  const double bits = 8.0 * static_cast<double>(encode(layout, update).size());
  return bits / bound_bits(layout.params(), update.index.size());
}

void size() {
  std::printf(
      "payload against the bound, 20,000 and 200,000 entries: worst and mean over 60 densities each\n");
  for (const auto& [low, high] :
       {std::pair{1e-5, 1e-4}, {1e-4, 1e-3}, {1e-3, 1e-2}, {1e-2, 1e-1}, {0.1, 0.5}}) {
    double worst = 0, sum = 0, worst_density = 0;
    for (int i = 0; i < 60; ++i) {
      const double density = low * std::pow(high / low, i / 60.0);
      ParamLayout layout = ParamLayout::create({{"w", {1}}}).value();
      const SparseUpdate update = some_entries(layout, density, i % 2 == 0 ? 20'000 : 200'000, 7);
      const double times = times_bound(layout, update);
      sum += times / 60;
      if (times > worst) worst_density = density;
      worst = std::max(worst, times);
    }
    std::printf("  density %.5f to %.5f: worst %.4f (at %.6f), mean %.4f\n", low, high, worst, worst_density,
                sum);
  }
}

void speed() {
  std::printf("million entries a second, one core: 16,384 entries (one segment), and 1,000,000 entries\n");
  std::vector<const RiceKernels*> sets{&rice_kernels_portable};
  if (rice_kernels_avx512() != nullptr) sets.push_back(rice_kernels_avx512());
  for (const double density : {0.01, 0.008, 0.001, 0.0001})
    for (const std::uint32_t entries : {16'000u, 200'000u, 1'000'000u}) {
      ParamLayout layout = ParamLayout::create({{"w", {1}}}).value();
      const SparseUpdate update = some_entries(layout, density, entries, 3);
      const double count = static_cast<double>(update.index.size());
      for (const RiceKernels* kernels : sets) {
        const CodecOptions options{nullptr, kernels};
        Bytes payload;
        SparseUpdate back;
        const double encode_seconds = bench::best_of(60, [&] { payload = encode(layout, update, options); });
        const double decode_seconds = bench::best_of(60, [&] {
          if (!decode_into(layout, payload, back, options)) std::abort();
        });
        if (back != update) std::abort();
        std::printf("  density %.4f, %7.0f entries, %-8s encode %5.0f, decode %5.0f\n", density, count,
                    kernels->name, count / encode_seconds / 1e6, count / decode_seconds / 1e6);
      }
    }
  Bytes bytes(1 << 16, 0x5a);
  std::uint32_t sum = 0;
  const double with = bench::best_of(50, [&] { sum += crc32c(bytes); });
  const double without = bench::best_of(50, [&] { sum += crc32c_portable(bytes); });
  std::printf("checksum: %.1f GB/s by instruction, %.1f GB/s by tables (%u)\n", 65.536e-6 / with,
              65.536e-6 / without, sum & 1);
}

}  // namespace

int main(int argc, char** argv) {
  const auto wanted = [&](const char* name) {
    return argc == 1 ||
           std::any_of(argv + 1, argv + argc, [&](const char* arg) { return std::string(arg) == name; });
  };
  if (wanted("size")) size();
  if (wanted("speed")) speed();
}
