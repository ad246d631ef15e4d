// KernelTable: the few loops that cost nearly all the time of a training step, as plain function pointers.
//
// This header is all that the kernel source includes: it is compiled once per instruction set, so it must not
// pull in inline functions that the linker could then pick, in their wide-vector form, for everybody.
//
// The contract of every slot: an output element is ONE chain of operations in a fixed order, each rounded
// once. A vector lane never meets its neighbours, so the width of the vector, the blocking and the compiler
// cannot change a bit. A NaN stays a NaN; which of the many NaN patterns it is remains open.
#pragma once

namespace rumor::models {

// A strided read-only matrix: element (r, c) at data[r * row + c * column].
struct MatrixView {
  const float* data;
  long row;
  long column;
};

struct SequenceKernels;   // models/kernels/sequence_kernels.h
struct RecurrentKernels;  // models/kernels/recurrent_kernels.h

// A read-only matrix with rows and columns at any address: element (r, c) is data[row_at[r] + column_at[c]]. Example: a
// picture under a sliding window; rows are the places of the window, columns its content.
struct GatheredView {
  const float* data;
  const int* row_at;
  const int* column_at;
};

// Start value of the sums of `matmul`.
enum class Start { zero, output };

struct KernelTable {
  const char* name;

  // y[m][n] = start + sum over k of a(m, k) * b[k][n], k ascending, each step one fused multiply-add.
  // Columns of b and y are contiguous, rows `b_row` and `y_row` floats apart; y overlaps neither a nor b.
  // Any size, zero included (depth zero: y = start). Cost: rows * columns * depth fused multiply-adds.
  void (*matmul)(long rows, long columns, long depth, MatrixView a, const float* b, long b_row, float* y,
                 long y_row, Start start);

  // The same product with a gathered a.
  void (*matmul_gathered)(long rows, long columns, long depth, GatheredView a, const float* b, long b_row,
                          float* y, long y_row, Start start);

  // y[c][r] = x[r][c], their rows x_row and y_row floats apart. No overlap.
  void (*transpose)(long rows, long columns, const float* x, long x_row, float* y, long y_row);

  // x = x < 0 ? 0 : x. A NaN passes, so that a diverged model shows.
  void (*relu)(long count, float* x);

  // change = activation > 0 ? change : 0.
  void (*relu_backward)(long count, const float* activation, float* change);

  // y = y + a * x, one fused multiply-add.
  void (*axpy)(long count, float a, const float* x, float* y);

  // Over a matrix [rows][columns] without gaps, by column:
  // sum[c] = sum over r of (x[r][c] - x_centre[c]) * (y[r][c] - y_centre[c]), r ascending, each operation
  // rounded.
  void (*centred_dots)(long rows, long columns, const float* x, const float* x_centre, const float* y,
                       const float* y_centre, float* sum);
  // y[r][c] = x[r][c] * scale[c] + shift[c], two roundings.
  void (*scale_columns)(long rows, long columns, const float* x, const float* scale, const float* shift,
                        float* y);
  // y[r][c] = y[r][c] * y_scale[c] + (x[r][c] * x_scale[c] + shift[c]), each operation rounded.
  void (*blend_columns)(long rows, long columns, const float* x, const float* x_scale, const float* shift,
                        const float* y_scale, float* y);

  // y[r][c] = the largest of the window x[2r .. 2r + 1][2c .. 2c + 1], for each of `channels` values of a
  // pixel. x: [height][width][channels], y: [height / 2][width / 2][channels]: an odd last row or column is
  // left out. A NaN in the window is the largest.
  void (*max_pool)(long height, long width, long channels, const float* x, float* y);
  // The change of y goes to the first place of its window, row by row, that holds the largest value. All other places
  // of change_x become zero.
  void (*max_pool_backward)(long height, long width, long channels, const float* x, const float* change_y,
                            float* change_x);

  // y = (byte - mean) * scale, two roundings.
  void (*normalise)(long count, const unsigned char* bytes, float mean, float scale, float* y);

  // Further kernels for a transformer.
  const SequenceKernels* sequence;
  // Those of an LSTM.
  const RecurrentKernels* recurrent;
};

}  // namespace rumor::models
