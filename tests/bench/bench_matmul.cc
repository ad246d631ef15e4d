// The matrix products of a training step, one thread: ours, beside OpenBLAS where the build found it and
// beside the rate of bare fused multiply-adds, in turns. Figures are the best of many short rounds, in 10^9
// operations a second.
#include <algorithm>
#include <cstdio>
#include <vector>

#ifdef RUMOR_OPENBLAS
#include <cblas.h>
#endif

#include "models/kernels/kernels.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/prng.h"
#include "tests/bench/fma_peak.h"
#include "tests/bench/measure.h"

namespace {

using namespace rumor;
using namespace rumor::models;

struct Shape {
  const char* name;
  long rows, columns, depth;
  bool a_transposed;  // a is stored [depth][rows]
};

constexpr Shape shapes[] = {
    {"linear 1024 -> 1024, batch 64: forward", 1024, 64, 1024, false},
    {"  d input", 64, 1024, 1024, false},
    {"  d weight", 1024, 1024, 64, true},
    {"  d weight, from the transposed", 1024, 1024, 64, false},
    {"linear 784 -> 1024, batch 128: forward", 1024, 128, 784, false},
    {"  d weight", 1024, 784, 128, true},
    {"linear 12544 -> 128, batch 64: forward", 128, 64, 12544, false},
    {"  d input", 64, 12544, 128, false},
    {"  d weight", 128, 12544, 64, true},
    {"GPT 128: 2048 x 512 x 128", 2048, 512, 128, false},
    {"  d weight", 128, 512, 2048, true},
    {"GPT 384: 2048 x 1536 x 384", 2048, 1536, 384, false},
    {"  d weight", 384, 1536, 2048, true},
    {"1024 x 1024 x 1024", 1024, 1024, 1024, false},
};

LargeVector<float> numbers(long count, Prng& prng) {
  LargeVector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = static_cast<float>(prng.between(-1000, 1000)) / 1000;
  return values;
}

void ours(const Shape& s, const float* a, const float* b, float* y) {
  const MatrixView view = s.a_transposed ? MatrixView{a, 1, s.rows} : MatrixView{a, s.depth, 1};
  kernels().matmul(s.rows, s.columns, s.depth, view, b, s.columns, y, s.columns, Start::zero);
}

#ifdef RUMOR_OPENBLAS
void theirs(const Shape& s, const float* a, const float* b, float* y) {
  cblas_sgemm(CblasRowMajor, s.a_transposed ? CblasTrans : CblasNoTrans, CblasNoTrans,
              static_cast<int>(s.rows), static_cast<int>(s.columns), static_cast<int>(s.depth), 1, a,
              static_cast<int>(s.a_transposed ? s.rows : s.depth), b, static_cast<int>(s.columns), 0, y,
              static_cast<int>(s.columns));
}
#endif

}  // namespace

int main() {
#ifdef RUMOR_OPENBLAS
  openblas_set_num_threads(1);
#endif
  Prng prng(1);
  double peak = 0;
  std::printf("%-44s %10s %10s %12s\n", "y[rows][columns], kernels", kernels().name, "OpenBLAS",
              "multiply-add");
  for (const Shape& s : shapes) {
    const LargeVector<float> a = numbers(s.rows * s.depth, prng), b = numbers(s.depth * s.columns, prng);
    LargeVector<float> y = numbers(s.rows * s.columns, prng);
    const double operations = 2.0 * static_cast<double>(s.rows) * static_cast<double>(s.columns) *
                              static_cast<double>(s.depth) * 1e-9;
    double our_seconds = 1e9, their_seconds = 1e9;
    for (int round = 0; round < 40; ++round) {
      our_seconds = std::min(our_seconds, bench::seconds_of([&] { ours(s, a.data(), b.data(), y.data()); }));
#ifdef RUMOR_OPENBLAS
      their_seconds =
          std::min(their_seconds, bench::seconds_of([&] { theirs(s, a.data(), b.data(), y.data()); }));
#endif
      peak = std::max(peak, bench::fma_rate());
    }
    std::printf("%-44s %10.1f %10.1f %12.1f\n", s.name, operations / our_seconds, operations / their_seconds,
                peak * 1e-9);
  }
}
