// Speed of the compressor and the codec, as ratios against what memory allows in the same run: machines are
// shared and noisy.
//   scan       absorb() against a bare `r += u` over the same buffers, by density
//   codec      encode and decode, million entries a second, and payload bits against the bound
// usage: bench_compress [PARAMS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "compress/compressor.h"
#include "compress/statistics.h"
#include "runtime/base/prng.h"

using namespace rumor;

namespace {

// Best of several, in seconds.
double best_of(int rounds, const std::function<void()>& work) {
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// Sum of twelve uniforms: near enough to a gradient's bell shape, and the same everywhere.
std::vector<float> changes(std::size_t count) {
  Prng prng(1);
  std::vector<float> values(count);
  for (float& value : values) {
    const std::uint64_t a = prng.next(), b = prng.next();
    int sum = 0;
    for (int shift = 0; shift < 48; shift += 8)
      sum += static_cast<int>((a >> shift) & 255) + static_cast<int>((b >> shift) & 255);
    value = static_cast<float>(sum - 12 * 127) * 1e-5f;
  }
  return values;
}

void scan(std::uint32_t params) {
  const ParamLayout layout = ParamLayout::create({{"w", {params / 1024, 1024}}}).value();
  const std::vector<float> delta = changes(layout.params());
  std::vector<float> sum(layout.params(), 0.0f);
  const double bare = best_of(9, [&] {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += delta[i];
  });
  std::printf("bare r += u: %.2f billion parameters a second\n", layout.params() / bare / 1e9);
  for (double density : {0.0001, 0.001, 0.01}) {
    compress::Compressor compressor(layout, {density});
    compress::SparseUpdate update;
    for (int warm = 0; warm < 20; ++warm) {
      if (!compressor.absorb(delta, update)) std::abort();
    }
    const double taken = best_of(9, [&] {
      if (!compressor.absorb(delta, update)) std::abort();
    });
    std::printf("absorb at density %.4f: %.2f of its speed\n", density, bare / taken);
  }
}

void codec(std::uint32_t params) {
  const ParamLayout layout = ParamLayout::create({{"w", {params / 1024, 1024}}}).value();
  for (std::uint32_t one_in : {10'000u, 1000u, 100u}) {
    Prng prng(2);
    compress::SparseUpdate update;
    update.step = 12345;
    for (std::uint32_t i = 0; i < layout.params(); ++i) {
      if (!prng.chance(1, one_in)) continue;
      update.index.push_back(i);
      update.negative.push_back(static_cast<std::uint8_t>(prng.below(2)));
    }
    Bytes payload;
    const double entries = static_cast<double>(update.index.size());
    const double encode = best_of(9, [&] { payload = compress::encode(layout, update); });
    const double decode = best_of(9, [&] {
      if (!compress::decode(layout, payload)) std::abort();
    });
    const double bound = compress::bound_bits(layout.params(), update.index.size());
    std::printf(
        "1 in %u: %.3f bits an entry, %.4f of the bound; encode %.0f, decode %.0f million entries a second\n",
        one_in, 8.0 * static_cast<double>(payload.size()) / entries,
        8.0 * static_cast<double>(payload.size()) / bound, entries / encode / 1e6, entries / decode / 1e6);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto params = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 1 << 24);
  scan(params);
  codec(params);
}
