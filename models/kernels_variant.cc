// The kernels, compiled once per instruction set: KERNEL_LEVEL 0 (anything), 2 (AVX2 + FMA) or 512 (AVX-512).
//
// The level decides the width of `Lanes` and the shape of the register block, nothing else: each lane carries
// one output element and runs the same chain of fused multiply-adds at every level. So no std headers here,
// and everything but the table is in an anonymous namespace (see kernel_table.h).
#include "models/kernel_table.h"

#if KERNEL_LEVEL > 0
#include <immintrin.h>
#endif

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define INLINE inline __attribute__((always_inline))

namespace rumor::models::KERNEL_NAMESPACE {
namespace {

// ---- Lanes: loads, stores and one fused multiply-add. The _part forms touch the first n lanes only.

#if KERNEL_LEVEL == 512

using Lanes = __m512;
constexpr long width = 16;
constexpr long wide_rows = 8, wide_vectors = 3;  // 24 sums, 3 columns, 1 factor: 28 of 32 registers
constexpr long narrow_rows = 16;
INLINE __mmask16 first(long n) { return static_cast<__mmask16>((1u << n) - 1); }
INLINE Lanes zero() { return _mm512_setzero_ps(); }
INLINE Lanes splat(const float* p) { return _mm512_set1_ps(*p); }
INLINE Lanes load(const float* p) { return _mm512_loadu_ps(p); }
INLINE Lanes load_part(const float* p, long n) { return _mm512_maskz_loadu_ps(first(n), p); }
INLINE void store(float* p, Lanes v) { _mm512_storeu_ps(p, v); }
INLINE void store_part(float* p, long n, Lanes v) { _mm512_mask_storeu_ps(p, first(n), v); }
INLINE Lanes fma(Lanes a, Lanes b, Lanes c) { return _mm512_fmadd_ps(a, b, c); }

#elif KERNEL_LEVEL == 2

using Lanes = __m256;
constexpr long width = 8;
constexpr long wide_rows = 6, wide_vectors = 2;  // 12 sums, 2 columns, 1 factor: 15 of 16 registers
constexpr long narrow_rows = 8;
INLINE __m256i first(long n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lane);
}
INLINE Lanes zero() { return _mm256_setzero_ps(); }
INLINE Lanes splat(const float* p) { return _mm256_broadcast_ss(p); }
INLINE Lanes load(const float* p) { return _mm256_loadu_ps(p); }
INLINE Lanes load_part(const float* p, long n) { return _mm256_maskload_ps(p, first(n)); }
INLINE void store(float* p, Lanes v) { _mm256_storeu_ps(p, v); }
INLINE void store_part(float* p, long n, Lanes v) { _mm256_maskstore_ps(p, first(n), v); }
INLINE Lanes fma(Lanes a, Lanes b, Lanes c) { return _mm256_fmadd_ps(a, b, c); }

#else

struct Lanes {
  float v[4];
};
constexpr long width = 4;
constexpr long wide_rows = 4, wide_vectors = 4;
constexpr long narrow_rows = 8;
INLINE Lanes zero() { return {{0, 0, 0, 0}}; }
INLINE Lanes splat(const float* p) { return {{*p, *p, *p, *p}}; }
INLINE Lanes load(const float* p) { return {{p[0], p[1], p[2], p[3]}}; }
INLINE Lanes load_part(const float* p, long n) {
  Lanes lanes = zero();
  for (long i = 0; i < n; ++i) lanes.v[i] = p[i];
  return lanes;
}
INLINE void store_part(float* p, long n, Lanes v) {
  for (long i = 0; i < n; ++i) p[i] = v.v[i];
}
INLINE void store(float* p, Lanes v) { store_part(p, width, v); }
INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
  for (long i = 0; i < width; ++i) c.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return c;
}

#endif

// ---- matmul: register blocks of `rows` x (`vectors` * width) sums.

struct Product {
  long depth;
  MatrixView a;
  const float* b;
  long b_row;
  float* y;
  long y_row;
  Start start;
};

// `last` lanes of the last vector exist; part = last < width.
template <long vectors, bool part>
INLINE Lanes load_column(const float* p, long v, long last) {
  return part && v == vectors - 1 ? load_part(p + v * width, last) : load(p + v * width);
}

template <long rows, long vectors, bool part>
INLINE void block(const Product& p, long row, long column, long last) {
  Lanes sum[rows][vectors];
  float* y = p.y + row * p.y_row + column;
  UNROLL for (long r = 0; r < rows; ++r) {
    UNROLL for (long v = 0; v < vectors; ++v) {
      sum[r][v] = p.start == Start::zero ? zero() : load_column<vectors, part>(y + r * p.y_row, v, last);
    }
  }
  const float* a = p.a.data + row * p.a.row;
  const float* b = p.b + column;
  const long a_row = p.a.row, a_column = p.a.column, b_row = p.b_row;
  for (long k = p.depth; k > 0; --k, a += a_column, b += b_row) {
    Lanes columns[vectors];
    UNROLL for (long v = 0; v < vectors; ++v) columns[v] = load_column<vectors, part>(b, v, last);
    UNROLL for (long r = 0; r < rows; ++r) {
      const Lanes factor = splat(a + r * a_row);
      UNROLL for (long v = 0; v < vectors; ++v) sum[r][v] = fma(factor, columns[v], sum[r][v]);
    }
  }
  UNROLL for (long r = 0; r < rows; ++r) {
    UNROLL for (long v = 0; v < vectors; ++v) {
      float* to = y + r * p.y_row + v * width;
      if (part && v == vectors - 1) {
        store_part(to, last, sum[r][v]);
      } else {
        store(to, sum[r][v]);
      }
    }
  }
}

// All rows of a strip of columns, in blocks of `rows`, then of half that, down to one.
template <long rows, long vectors, bool part>
void strip(const Product& p, long row, long row_end, long column, long last) {
  for (; row + rows <= row_end; row += rows) block<rows, vectors, part>(p, row, column, last);
  if constexpr (rows > 1) {
    if (row < row_end) strip<rows / 2, vectors, part>(p, row, row_end, column, last);
  }
}

void product(const Product& p, long rows, long columns) {
  constexpr long wide = wide_vectors * width;
  long column = 0;
  for (; column + wide <= columns; column += wide)
    strip<wide_rows, wide_vectors, false>(p, 0, rows, column, width);
  for (; column + width <= columns; column += width)
    strip<narrow_rows, 1, false>(p, 0, rows, column, width);
  if (column < columns) strip<narrow_rows, 1, true>(p, 0, rows, column, columns - column);
}

// Long sums are cut so that the piece of b in use stays in the first-level cache. The next piece goes on from
// the stored sum, which is the same chain: a float in memory is a float in a register.
void matmul(long rows, long columns, long depth, MatrixView a, const float* b, long b_row, float* y,
            long y_row, Start start) {
  constexpr long piece = 256;
  if (depth == 0 && start == Start::zero) {  // a and b may be null
    for (long r = 0; r < rows; ++r) {
      for (long c = 0; c < columns; ++c) y[r * y_row + c] = 0;
    }
  }
  for (long k = 0; k < depth; k += piece) {
    const long length = depth - k < piece ? depth - k : piece;
    const MatrixView part{a.data + k * a.column, a.row, a.column};
    product({length, part, b + k * b_row, b_row, y, y_row, k == 0 ? start : Start::output}, rows, columns);
  }
}

// ---- the rest: plain loops

void transpose(long rows, long columns, const float* x, float* y) {
  constexpr long tile = 16;
  for (long r0 = 0; r0 < rows; r0 += tile) {
    const long r1 = r0 + tile < rows ? r0 + tile : rows;
    for (long c = 0; c < columns; ++c) {
      for (long r = r0; r < r1; ++r) y[c * rows + r] = x[r * columns + c];
    }
  }
}

void relu(long count, float* x) {
  for (long i = 0; i < count; ++i) x[i] = x[i] < 0 ? 0 : x[i];
}

void relu_backward(long count, const float* activation, float* change) {
  for (long i = 0; i < count; ++i) change[i] = activation[i] > 0 ? change[i] : 0;
}

void normalise(long count, const unsigned char* bytes, float mean, float scale, float* y) {
  for (long i = 0; i < count; ++i) y[i] = (static_cast<float>(bytes[i]) - mean) * scale;
}

}  // namespace

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
extern const SequenceKernels sequence_table;
extern const KernelTable table;
const KernelTable table = {TEXT(KERNEL_NAMESPACE), matmul, transpose, relu, relu_backward, normalise, &sequence_table};

}  // namespace rumor::models::KERNEL_NAMESPACE
