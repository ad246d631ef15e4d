// Times the protocol thread's work on a large update that has arrived, part by part: its hash, decoding, the
// fingerprint with each set of kernels, and the addition to the weights. Prints the best of several times, since the
// machine may be busy, and each part's share of the first three.
//
// usage: bench_receive [PARAMS [DENSITY]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "compress/payload/apply.h"
#include "runtime/base/sha256.h"
#include "runtime/replica/fingerprint.h"
#include "runtime/replica/replica.h"
#include "tests/bench/measure.h"

using namespace rumor;

namespace {

constexpr int rounds = 7;

// The entries onto the weights of a replica, which adds up the fingerprint of what it did and looks for the end of the
// grid, beside the additions alone.
void print_apply(const ParamLayout& layout, const compress::SparseUpdate& update) {
  LargeVector<std::int32_t> weights(layout.params(), 0);
  const compress::SparseUpdate* const one = &update;
  const double plain = bench::best_of(rounds, [&] { compress::apply(layout, {&one, 1}, weights); });
  Replica replica(RunId::from(Bytes(RunId::size, 7)), layout, std::move(weights));
  double best = 1e9;
  for (std::uint64_t seq = 1; seq <= rounds; ++seq) {
    gossip::UpdateHeader header;
    header.key.seq = seq;
    replica.apply_own(header, update);
    best = std::min(best, bench::best_of(1, [&] { replica.apply_some(UINT64_MAX / layout.params()); }));
  }
  std::printf("  apply, replica %8.2f ms, %.2f of the additions alone\n", best * 1e3, best / plain);
}

}  // namespace

int main(int argc, char** argv) {
  const auto params = static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 124'000'000);
  const double density = argc > 2 ? std::strtod(argv[2], nullptr) : 0.065;
  const ParamLayout layout = ParamLayout::create({{"w", {params}}}).value();
  const compress::SparseUpdate update = bench::independent(layout, density, 1);
  const Bytes payload = compress::encode(layout, update);
  std::printf("%u parameters, %zu entries, payload of %zu bytes\n", params, update.index.size(), payload.size());

  std::uint64_t kept = 0;
  const double hash = bench::best_of(rounds, [&] { kept += sha256(payload).bytes[0]; });
  const double decode = bench::best_of(rounds, [&] { kept += compress::decode(layout, payload).value().index[0]; });
  const Fingerprinter fingerprinter(RunId::from(Bytes(RunId::size, 7)));
  const double fingerprint = bench::best_of(rounds, [&] { kept += fingerprinter.of_update(layout, update); });
  const double all = hash + decode + fingerprint;
  std::printf("  hash         %6.2f ms, %2.0f %%\n", hash * 1e3, hash / all * 100);
  std::printf("  decode       %6.2f ms, %2.0f %%\n", decode * 1e3, decode / all * 100);
  std::printf("  fingerprint  %6.2f ms, %2.0f %%\n", fingerprint * 1e3, fingerprint / all * 100);
  std::optional<double> portable;
  for (const FingerprintKernels* set :
       {&fingerprint_kernels_portable, fingerprint_kernels_avx2(), fingerprint_kernels_avx512()}) {
    if (set == nullptr) continue;
    const double took = bench::best_of(rounds, [&] {
      kept += set->entries(1, update.index.data(), update.negative.data(), update.index.size()).low;
    });
    if (!portable) portable = took;
    std::printf("  fingerprint, %-9s %6.2f ms, %.2f of portable\n", set->name, took * 1e3, took / *portable);
  }
  print_apply(layout, update);
  return kept == 0 ? 1 : 0;
}
