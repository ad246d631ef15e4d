// SequenceKernels: the loops of a transformer besides its matrix products, as plain function pointers.
//
// A part of the kernel table, under its rules (models/kernels/kernel_table.h): an output is one chain of operations
// in a fixed order; a sum over a row is sixteen such chains, joined in halves (models/kernels/sequence_lanes.h). Equal
// bits at every vector width.
//
// Rows of x, y and their like are `columns` floats long and, where a stride is given, `..._row` floats apart;
// without one they have no gaps. Outputs overlap no inputs unless they are the same argument. Any size, zero
// included.
#pragma once

namespace rumor::models {

struct SequenceKernels {
  // y = a + b. y may be a or b.
  void (*add)(long count, const float* a, const float* b, float* y);

  // y[r][c] = x[r][c] + row[c]; without x (null): y[r][c] = row[c]. y may be x.
  void (*add_row)(long rows, long columns, const float* x, const float* row, float* y);

  // y[c] = sum over r of x[r][c], r ascending.
  void (*column_sums)(long rows, long columns, const float* x, long x_row, float* y);

  // x[r][c] *= factor[r]; x[r][c] *= factor[c].
  void (*scale_rows)(long rows, long columns, const float* factor, float* x, long x_row);
  void (*scale_columns)(long rows, long columns, const float* factor, float* x, long x_row);

  // y[r] = sum over c of a[r][c] * b[r][c].
  void (*row_dots)(long rows, long columns, const float* a, long a_row, const float* b, long b_row, float* y);

  // y = (x - mean) * scale * gain + bias, with mean and scale = 1 / sqrt(variance + epsilon) of each row,
  // which come out as well (Ba, Kiros, Hinton 2016). Needs columns >= 1.
  void (*layer_norm)(long rows, long columns, float epsilon, const float* x, const float* gain,
                     const float* bias, float* y, float* mean, float* scale);

  // From d loss / d y in `change`: what it means for x is added to `x_change`, for gain and bias to
  // `gain_change` and `bias_change`, row by row.
  void (*layer_norm_backward)(long rows, long columns, const float* x, const float* gain, const float* mean,
                              const float* scale, const float* change, float* x_change, float* gain_change,
                              float* bias_change);

  // y = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), the tanh form of GELU (Hendrycks, Gimpel 2016). y
  // may be x.
  void (*gelu)(long count, const float* x, float* y);
  // change *= d gelu(x) / d x.
  void (*gelu_backward)(long count, const float* x, float* change);

  // Row r looks at columns 0 to first + r, and at none beyond `columns`:
  //   x = e^(scale * (x - top[r])) there and 0 elsewhere, top[r] the largest x that it looks at, weight[r] 1
  //   / their
  // sum. So weight * x is the softmax; whoever multiplies by x saves a pass by multiplying by the weight
  // afterwards. Needs first >= 0, columns >= 1.
  void (*causal_exponentials)(long rows, long first, long columns, float scale, float* x, long x_row,
                              float* top, float* weight);

  // The way back. In: x as causal_exponentials had it, with its top and weight; change, d loss / d softmax;
  // dot[r] the sum over c of change * softmax. Out: x the softmax, change d loss / d x; both 0 where a row
  // does not look.
  void (*causal_backward)(long rows, long first, long columns, float scale, const float* top,
                          const float* weight, const float* dot, float* x, float* change, long row);

  // Down each column: top[c] its largest x, sum[c] that of x = e^(x - top[c]), which takes the place of x.
  // Added up in groups of 32 rows, so that long columns stay exact. Needs rows >= 1.
  void (*column_exponentials)(long rows, long columns, float* x, long x_row, float* top, float* sum);
};

}  // namespace rumor::models
