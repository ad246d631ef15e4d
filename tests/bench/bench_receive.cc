// Times the protocol thread's work on a large update that has arrived, part by part: its hash, decoding, and the
// fingerprint with each set of kernels. Prints the best of several times, since the machine may be busy, and each
// part's share of the whole.
//
// usage: bench_receive [PARAMS [DENSITY]]
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "runtime/base/sha256.h"
#include "runtime/replica/fingerprint.h"
#include "tests/bench/measure.h"

using namespace rumor;

int main(int argc, char** argv) {
  const auto params = static_cast<std::uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 124'000'000);
  const double density = argc > 2 ? std::strtod(argv[2], nullptr) : 0.065;
  const ParamLayout layout = ParamLayout::create({{"w", {params}}}).value();
  const compress::SparseUpdate update = bench::independent(layout, density, 1);
  const Bytes payload = compress::encode(layout, update);
  std::printf("%u parameters, %zu entries, payload of %zu bytes\n", params, update.index.size(), payload.size());

  constexpr int rounds = 7;
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
  return kept == 0 ? 1 : 0;
}
