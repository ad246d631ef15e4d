// Matrix products, compiled once per instruction set (models/kernels/kernel_lanes.h).
//
// The output is computed in tiles that stay in the second-level cache. A tile is computed in blocks that fit the
// registers: `rows` broadcast values of a times `vectors` vectors of b, for a piece of the depth. A block reads a panel
// of b, which stays in the first-level cache while all rows of the tile use it. If the rows of a panel are far apart in
// memory, the first block that reads the panel copies it: lines at equal distances of a page fall into the same few
// cache sets. If the rows of a are contiguous, a is read in place, once per panel. A transposed a is packed for each
// tile, because a block would use only a few floats of each line. The next block's a and y and the next panel are
// prefetched.
//
// A sum that is cut into pieces continues from the stored value. The chain of operations stays the same: a float in
// memory equals a float in a register.
#include "models/kernels/kernel_lanes.h"
#include "models/kernels/kernel_table.h"

namespace rumor::models::KERNEL_NAMESPACE {
namespace {

using namespace lanes;

// Rows of a block that is `vectors` wide. Registers: rows * vectors for sums, `vectors` for b, one for a.
#if KERNEL_LEVEL == 512
constexpr long vectors_max = 4, piece_max = 128;  // 32 registers
constexpr long block_rows(long vectors) {
  return vectors == 4 ? 6 : vectors == 2 ? 12 : 8;
}
#elif KERNEL_LEVEL == 2
constexpr long vectors_max = 2, piece_max = 256;  // 16 registers
constexpr long block_rows(long vectors) {
  return vectors == 2 ? 6 : 8;
}
#else
constexpr long vectors_max = 4, piece_max = 256;
constexpr long block_rows(long vectors) {
  return vectors == 4 ? 4 : 8;
}
#endif
constexpr long rows_for_copy = 24;  // with fewer rows a panel is read too rarely; the first block copies it
static_assert(block_rows(1) <= rows_for_copy && block_rows(2) <= rows_for_copy && block_rows(4) <= rows_for_copy);
constexpr long panel_columns = vectors_max * width;
constexpr long packed_rows = block_rows(vectors_max);
constexpr long tile_rows = 64 * packed_rows, tile_columns = 512;
constexpr long line = 16;  // floats of a cache line

LANES_INLINE void fetch(const float* p) {
  __builtin_prefetch(p, 0, 3);
}
LANES_INLINE void fetch_second_level(const float* p) {
  __builtin_prefetch(p, 0, 2);
}

// The matrix a, from one row on. Dense: strides. Gathered: element (r, k) is at data[row_at[r] + column_at[k]].
struct Dense {
  static constexpr bool is_packed = false;
  const float* data;
  long row, column;
  LANES_INLINE const float* row_start(long r) const { return data + r * row; }
  LANES_INLINE long step(long k) const { return k * column; }
  // Prefetches the rows after this block, in the same piece: a is usually read only once, from memory.
  LANES_INLINE void fetch_ahead(const float* const* at, long rows, long k) const {
    if (column == 1) {
      for (long r = 0; r < rows; ++r) fetch(at[r] + rows * row + k);
    }
  }
};
struct Gathered {
  static constexpr bool is_packed = false;
  const float* data;
  const int *row_at, *column_at;
  LANES_INLINE const float* row_start(long r) const { return data + row_at[r]; }
  LANES_INLINE long step(long k) const { return column_at[k]; }
  LANES_INLINE void fetch_ahead(const float* const*, long, long) const {}
};
// Packed: copied into blocks of packed_rows rows; in each block the rows of a column are neighbours.
struct Packed {
  static constexpr bool is_packed = true;
  const float* data;
  long depth;
  LANES_INLINE const float* row_start(long r) const {
    return data + r / packed_rows * packed_rows * depth + r % packed_rows;
  }
  LANES_INLINE long step(long k) const { return k * packed_rows; }
  LANES_INLINE void fetch_ahead(const float* const*, long, long) const {}
};

// Rows of a panel that are still to be prefetched, `each` per block.
struct Ahead {
  const float* at;
  long row, left, each;
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
  float* copy;  // the first block copies the panel here, panel_columns apart, for the other blocks; or null
  Ahead ahead;
};

template <long vectors, bool part>
LANES_INLINE Lanes load_vector(const float* p, long v, long last) {
  if (part && v == vectors - 1) return First{last}.load(p + v * width);
  return Whole{}.load(p + v * width);
}

// `part`: the last vector is not full. `copies`: the block copies the panel to s.copy.
template <long rows, long vectors, bool part, bool copies, class Left>
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
  float* copy = s.copy;
  for (long k = 0, y_ahead = rows; k < s.depth; ++y_ahead) {
    s.a.fetch_ahead(at, rows, k);
    if (y_ahead < 2 * rows) {
      LANES_UNROLL for (long v = 0; v < vectors; ++v) fetch(y + y_ahead * s.y_row + v * width);
    }
    for (const long end = k + line < s.depth ? k + line : s.depth; k < end; ++k, b += b_row) {
      const long step = s.a.step(k);
      Lanes columns[vectors];
      LANES_UNROLL for (long v = 0; v < vectors; ++v) columns[v] = load_vector<vectors, part>(b, v, s.last);
      if constexpr (copies) {
        LANES_UNROLL for (long v = 0; v < vectors; ++v) Whole{}.store(copy + v * width, columns[v]);
        copy += panel_columns;
      }
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

template <long vectors>
LANES_INLINE void fetch_panel(Ahead& ahead) {
  for (long i = 0; i < ahead.each && ahead.left > 0; ++i, --ahead.left, ahead.at += ahead.row)
    LANES_UNROLL for (long v = 0; v < vectors; ++v) fetch_second_level(ahead.at + v * width);
}

// Rows of the next smaller block. After six come four, so that a rest of two or four rows is one block.
constexpr long fewer_rows(long rows) {
  return rows == 6 ? 4 : rows / 2;
}

// Computes the rows from `row` on in blocks of `rows`, then of fewer, down to one.
template <long rows, long vectors, bool part, class Left>
void all_rows(Strip<Left>& s, long row, long row_end) {
  for (; row + rows <= row_end; row += rows) {
    if constexpr (Left::is_packed) fetch_panel<vectors>(s.ahead);
    block<rows, vectors, part, false>(s, row);
  }
  if constexpr (rows > 1) {
    if (row < row_end) all_rows<fewer_rows(rows), vectors, part>(s, row, row_end);
  }
}

template <long vectors, bool part, class Left>
void strip_of_width(Strip<Left>& s, long rows) {
  constexpr long first = block_rows(vectors);
  if (s.copy) {
    block<first, vectors, part, true>(s, 0);
    s.b = s.copy;
    s.b_row = panel_columns;
  }
  all_rows<first, vectors, part>(s, s.copy ? first : 0, rows);
}

template <long vectors, class Left>
void strip_of(Strip<Left>& s, long rows, long columns) {
  if constexpr (vectors > 1) {
    if (columns <= (vectors - 1) * width) return strip_of<vectors - 1>(s, rows, columns);
  }
  s.last = columns - (vectors - 1) * width;
  if (s.last == width) {
    strip_of_width<vectors, false>(s, rows);
  } else {
    strip_of_width<vectors, true>(s, rows);
  }
}

struct Right {
  const float* data;
  long row;
};

// packed[r / packed_rows][k][r % packed_rows] = a(r, k), where a is a transposed matrix: a.row is 1.
void pack(MatrixView a, long rows, long depth, float* packed) {
  constexpr long chunk = 32;
  for (long k0 = 0; k0 < depth; k0 += chunk) {
    const long k1 = k0 + chunk < depth ? k0 + chunk : depth;
    for (long r0 = 0; r0 < rows; r0 += packed_rows) {
      const long count = rows - r0 < packed_rows ? rows - r0 : packed_rows;
      const float* from = a.data + r0 + k0 * a.column;
      float* to = packed + r0 * depth + k0 * packed_rows;
      for (long k = k0; k < k1; ++k, from += a.column, to += packed_rows) {
        if (count == packed_rows) {
          __builtin_memcpy(to, from, packed_rows * sizeof(float));
        } else {
          for (long r = 0; r < count; ++r) to[r] = from[r];
        }
      }
    }
  }
}

// The length of pieces of equal size, a multiple of `grain`, at most `most` before rounding up; as few as possible.
long cut(long length, long most, long grain) {
  const long pieces = (length + most - 1) / most;
  return pieces == 0 ? grain : ((length + pieces - 1) / pieces + grain - 1) / grain * grain;
}

// One tile of y, one piece of the depth.
template <class Left>
void tile(Strip<Left> s, long rows, long columns) {
  const bool is_copied = rows >= rows_for_copy && s.b_row > panel_columns;
  alignas(64) float panel[piece_max * panel_columns];
  const Strip<Left> all = s;
  for (long c = 0; c < columns; c += panel_columns) {
    s.b = all.b + c;
    s.b_row = all.b_row;
    s.y = all.y + c;
    s.copy = is_copied ? panel : nullptr;
    // Prefetch only for a packed a: it is in cache and leaves memory idle. An unpacked a is read from memory along with
    // b, and prefetching would delay it.
    const bool has_next = c + panel_columns < columns;
    s.ahead = {s.b + panel_columns, s.b_row, has_next ? s.depth : 0, (s.depth * packed_rows + rows - 1) / rows};
    strip_of<vectors_max>(s, rows, has_next ? panel_columns : columns - c);
  }
}

template <class LeftTile>
void product(long rows, long columns, long depth, Right b, float* y, long y_row, Start start, LeftTile left) {
  if (depth == 0 && start == Start::zero) {
    for (long r = 0; r < rows; ++r) {
      for (long c = 0; c < columns; ++c) y[r * y_row + c] = 0;
    }
  }
  const long high = cut(rows, tile_rows, packed_rows), wide = cut(columns, tile_columns, panel_columns);
  const long deep = cut(depth, piece_max, line);
  for (long r = 0; r < rows; r += high) {
    const long rows_here = rows - r < high ? rows - r : high;
    for (long c = 0; c < columns; c += wide) {
      const long columns_here = columns - c < wide ? columns - c : wide;
      for (long k = 0; k < depth; k += deep) {
        const long length = depth - k < deep ? depth - k : deep;
        left(r, k, rows_here, length, [&](auto a) {
          tile(Strip<decltype(a)>{a, b.data + k * b.row + c, b.row, y + r * y_row + c, y_row, length, 0,
                                  k == 0 && start == Start::zero, nullptr, {}},
               rows_here, columns_here);
        });
      }
    }
  }
}

}  // namespace

void matmul(long rows, long columns, long depth, MatrixView a, const float* b, long b_row, float* y,
            long y_row, Start start) {
  constexpr long rows_for_packing = 24, columns_for_packing = 3 * panel_columns;
  if (a.row != 1 || a.column == 1 || rows < rows_for_packing || columns < columns_for_packing) {
    product(rows, columns, depth, {b, b_row}, y, y_row, start, [&](long r, long k, long, long, auto&& run) {
      run(Dense{a.data + r * a.row + k * a.column, a.row, a.column});
    });
  } else {
    alignas(64) float packed[tile_rows * piece_max];
    product(rows, columns, depth, {b, b_row}, y, y_row, start,
            [&](long r, long k, long rows_here, long length, auto&& run) {
              pack({a.data + r * a.row + k * a.column, a.row, a.column}, rows_here, length, packed);
              run(Packed{packed, length});
            });
  }
}

void matmul_gathered(long rows, long columns, long depth, GatheredView a, const float* b, long b_row,
                     float* y, long y_row, Start start) {
  product(rows, columns, depth, {b, b_row}, y, y_row, start, [&](long r, long k, long, long, auto&& run) {
    run(Gathered{a.data, a.row_at + r, a.column_at + k});
  });
}

}  // namespace rumor::models::KERNEL_NAMESPACE
