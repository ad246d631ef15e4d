// Matrix products, compiled once per instruction set (models/kernel_lanes.h).
//
// The output is walked in blocks that fit the registers: `rows` broadcast values of a times `vectors` vectors
// of b, for a piece of the depth. What a block reads of b is a panel of at most panel_bytes, which stays in
// the first-level cache while all rows go by; a panel whose rows lie far apart in memory is copied together
// first, because lines at equal distances of a page fall into the same few sets of the cache. a is read where
// it is, once for each panel.
//
// A sum that is cut into pieces goes on from the stored value, which is the same chain: a float in memory is
// a float in a register.
#include "models/kernel_lanes.h"
#include "models/kernel_table.h"

namespace rumor::models::KERNEL_NAMESPACE {
namespace {

using namespace lanes;

// Rows of a block that is `vectors` wide. Registers: rows * vectors sums, `vectors` of b, one of a.
#if KERNEL_LEVEL == 512
constexpr long vectors_max = 4, piece = 128;  // 32 registers
constexpr long block_rows(long vectors) {
  return vectors == 4 ? 6 : vectors == 2 ? 12 : 8;
}
#elif KERNEL_LEVEL == 2
constexpr long vectors_max = 2, piece = 256;  // 16 registers
constexpr long block_rows(long vectors) {
  return vectors == 2 ? 6 : 8;
}
#else
constexpr long vectors_max = 4, piece = 256;
constexpr long block_rows(long vectors) {
  return vectors == 4 ? 4 : 8;
}
#endif
constexpr long panel_columns = vectors_max * width;
constexpr long line = 16;  // floats of a cache line

LANES_INLINE void fetch(const float* p) {
  __builtin_prefetch(p, 0, 3);
}

// The matrix a, at a row. Dense: strides. Gathered: element (r, k) lies at data[row_at[r] + column_at[k]].
struct Dense {
  const float* data;
  long row, column;
  LANES_INLINE const float* row_start(long r) const { return data + r * row; }
  LANES_INLINE long step(long k) const { return k * column; }
  // The rows after this block, in the same piece: a is usually read but once, from far away.
  LANES_INLINE void fetch_ahead(const float* const* at, long rows, long k) const {
    if (column == 1) {
      for (long r = 0; r < rows; ++r) fetch(at[r] + rows * row + k);
    }
  }
};
struct Gathered {
  const float* data;
  const int *row_at, *column_at;
  LANES_INLINE const float* row_start(long r) const { return data + row_at[r]; }
  LANES_INLINE long step(long k) const { return column_at[k]; }
  LANES_INLINE void fetch_ahead(const float* const*, long, long) const {}
};

// One piece of the depth, one panel of b, all rows.
template <class Left>
struct Strip {
  Left a;
  const float* b;
  long b_row;
  float* y;
  long y_row;
  long depth;
  long last;  // lanes of the last vector: width, or less where the matrix ends
  bool from_zero;
};

// `part`: the last vector is not full.
template <long vectors, bool part>
LANES_INLINE Lanes load_vector(const float* p, long v, long last) {
  if (part && v == vectors - 1) return First{last}.load(p + v * width);
  return Whole{}.load(p + v * width);
}

template <long rows, long vectors, bool part, class Left>
LANES_INLINE void block(const Strip<Left>& s, long row) {
  Lanes sum[rows][vectors];
  float* const y = s.y + row * s.y_row;
  const float* at[rows];
  LANES_UNROLL for (long r = 0; r < rows; ++r) {
    at[r] = s.a.row_start(row + r);
    LANES_UNROLL for (long v = 0; v < vectors; ++v) {
      sum[r][v] = s.from_zero ? Lanes{} : load_vector<vectors, part>(y + r * s.y_row, v, s.last);
    }
  }
  const float* b = s.b;
  const long b_row = s.b_row;
  for (long k = 0; k < s.depth;) {
    s.a.fetch_ahead(at, rows, k);
    for (const long end = k + line < s.depth ? k + line : s.depth; k < end; ++k, b += b_row) {
      const long step = s.a.step(k);
      Lanes columns[vectors];
      LANES_UNROLL for (long v = 0; v < vectors; ++v) columns[v] = load_vector<vectors, part>(b, v, s.last);
      LANES_UNROLL for (long r = 0; r < rows; ++r) {
        const Lanes factor = splat(at[r][step]);
        LANES_UNROLL for (long v = 0; v < vectors; ++v) sum[r][v] = fma(factor, columns[v], sum[r][v]);
      }
    }
  }
  LANES_UNROLL for (long r = 0; r < rows; ++r) {
    LANES_UNROLL for (long v = 0; v < vectors; ++v) {
      float* to = y + r * s.y_row + v * width;
      if (part && v == vectors - 1) {
        First{s.last}.store(to, sum[r][v]);
      } else {
        Whole{}.store(to, sum[r][v]);
      }
    }
  }
}

// Rows from `row` on in blocks of `rows`, then of half that, down to one.
template <long rows, long vectors, bool part, class Left>
void all_rows(const Strip<Left>& s, long row, long row_end) {
  for (; row + rows <= row_end; row += rows) block<rows, vectors, part>(s, row);
  if constexpr (rows > 1) {
    if (row < row_end) all_rows<rows / 2, vectors, part>(s, row, row_end);
  }
}

template <long vectors, class Left>
void strip_of(Strip<Left>& s, long rows, long columns) {
  if constexpr (vectors > 1) {
    if (columns <= (vectors - 1) * width) return strip_of<vectors - 1>(s, rows, columns);
  }
  s.last = columns - (vectors - 1) * width;
  if (s.last == width) {
    all_rows<block_rows(vectors), vectors, false>(s, 0, rows);
  } else {
    all_rows<block_rows(vectors), vectors, true>(s, 0, rows);
  }
}

// panel[k][c] = b[k][c]
void copy_panel(long depth, long columns, const float* b, long b_row, float* panel) {
  for (long k = 0; k < depth; ++k, b += b_row, panel += panel_columns)
    each(columns, [&](auto v, long c) { v.store(panel + c, v.load(b + c)); });
}

struct Right {
  const float* data;
  long row;
};

// Rows that are worked on together: what a panel is multiplied with, `rows` by `depth` of a, is to stay in
// the second-level cache until the last panel has come by.
long rows_at_once(long depth) {
  constexpr long cached = 1L << 18, least = 240;
  return depth * least > cached ? least : cached / (depth + 1) / least * least;
}

template <class Left, class LeftAt>
void some_rows(long rows, long columns, long depth, LeftAt left_at, Right b, float* y, long y_row,
               Start start) {
  constexpr long rows_for_copy = 24;  // fewer do not read a panel often enough
  const bool is_copied = rows >= rows_for_copy && b.row > panel_columns;
  alignas(64) float panel[piece * panel_columns];
  for (long c = 0; c < columns; c += panel_columns) {
    const long wide = columns - c < panel_columns ? columns - c : panel_columns;
    for (long k = 0; k < depth; k += piece) {
      const long length = depth - k < piece ? depth - k : piece;
      Strip<Left> s{left_at(k), b.data + k * b.row + c,        b.row, y + c, y_row, length,
                    0,          k == 0 && start == Start::zero};
      if (is_copied) {
        copy_panel(length, wide, s.b, b.row, panel);
        s.b = panel;
        s.b_row = panel_columns;
      }
      strip_of<vectors_max>(s, rows, wide);
    }
  }
}

// left_at(r, k): a from row r and column k on.
template <class Left, class LeftAt>
void product(long rows, long columns, long depth, LeftAt left_at, Right b, float* y, long y_row,
             Start start) {
  if (depth == 0 && start == Start::zero) {
    for (long r = 0; r < rows; ++r) {
      for (long c = 0; c < columns; ++c) y[r * y_row + c] = 0;
    }
  }
  const long most = rows_at_once(depth);
  for (long r = 0; r < rows; r += most) {
    const auto from_row = [&](long k) { return left_at(r, k); };
    some_rows<Left>(rows - r < most ? rows - r : most, columns, depth, from_row, b, y + r * y_row, y_row,
                    start);
  }
}

}  // namespace

void matmul(long rows, long columns, long depth, MatrixView a, const float* b, long b_row, float* y,
            long y_row, Start start) {
  const auto left_at = [&](long r, long k) {
    return Dense{a.data + r * a.row + k * a.column, a.row, a.column};
  };
  product<Dense>(rows, columns, depth, left_at, {b, b_row}, y, y_row, start);
}

void matmul_gathered(long rows, long columns, long depth, GatheredView a, const float* b, long b_row,
                     float* y, long y_row, Start start) {
  const auto left_at = [&](long r, long k) { return Gathered{a.data, a.row_at + r, a.column_at + k}; };
  product<Gathered>(rows, columns, depth, left_at, {b, b_row}, y, y_row, start);
}

}  // namespace rumor::models::KERNEL_NAMESPACE
