// SequenceKernels: the loops of a transformer besides its matrix products, as plain function pointers.
//
// A part of the kernel table, under its rules (models/kernels/kernel_table.h). An output is one chain of operations in
// a fixed order; a sum over a row is sixteen such chains, joined in halves (models/kernels/sequence_lanes.h). Every
// vector width gives the same bits.
//
// Rows of x, y and similar arguments are `columns` floats long. They are `..._row` floats apart if there is such an
// argument; otherwise they have no gaps. Outputs overlap no inputs unless they are the same argument. Any size is
// valid, zero included.
#pragma once

namespace rumor::models {

struct SequenceKernels {
  // y = a + b. y may be a or b.
  void (*add)(long count, const float* a, const float* b, float* y);

  // y[r][c] = x[r][c] + row[c]; with x null: y[r][c] = row[c]. y may be x.
  void (*add_row)(long rows, long columns, const float* x, const float* row, float* y);

  // y[c] = sum over r of x[r][c], r ascending.
  void (*column_sums)(long rows, long columns, const float* x, long x_row, float* y);

  // x[r][c] *= factor[r]; x[r][c] *= factor[c].
  void (*scale_rows)(long rows, long columns, const float* factor, float* x, long x_row);
  void (*scale_columns)(long rows, long columns, const float* factor, float* x, long x_row);

  // y[r] = sum over c of a[r][c] * b[r][c].
  void (*row_dots)(long rows, long columns, const float* a, long a_row, const float* b, long b_row, float* y);

  // y = (x - mean) * scale * gain + bias, with mean and scale = 1 / sqrt(variance + epsilon) of each row; both are also
  // outputs (Ba, Kiros, Hinton 2016). Requires: columns >= 1.
  void (*layer_norm)(long rows, long columns, float epsilon, const float* x, const float* gain,
                     const float* bias, float* y, float* mean, float* scale);

  // The backward pass of layer_norm: `change` is d loss / d y. Adds d loss / d x to `x_change`, and those of gain and
  // bias to `gain_change` and `bias_change`, row by row.
  void (*layer_norm_backward)(long rows, long columns, const float* x, const float* gain, const float* mean,
                              const float* scale, const float* change, float* x_change, float* gain_change,
                              float* bias_change);

  // y = x * scale * gain, with scale = 1 / sqrt(mean of x^2 + epsilon) of each row; scale is an output too (Zhang,
  // Sennrich 2019). Requires: columns >= 1.
  void (*rms_norm)(long rows, long columns, float epsilon, const float* x, const float* gain, float* y, float* scale);

  // The backward pass of rms_norm, under the rules of layer_norm_backward.
  void (*rms_norm_backward)(long rows, long columns, const float* x, const float* gain, const float* scale,
                            const float* change, float* x_change, float* gain_change);

  // Rotates pairs of values (Su et al. 2021). x holds `heads` vectors of 2 * half floats, one after another. In each,
  // (x[i], x[i + half]) turns by the angle of cosine[i], sine[i]. With `direction` 1 it turns forward, with -1 back.
  void (*rotate)(long heads, long half, const float* cosine, const float* sine, float direction, float* x);

  // y = silu(gate) * up, silu(g) = g / (1 + e^-g): SwiGLU (Shazeer 2020).
  void (*swiglu)(long count, const float* gate, const float* up, float* y);
  // change: d loss / d y -> d loss / d gate and d loss / d up, overwritten.
  void (*swiglu_backward)(long count, const float* gate, const float* up, const float* change, float* gate_change,
                          float* up_change);

  // y = 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), the tanh form of GELU (Hendrycks, Gimpel 2016). y may be x.
  void (*gelu)(long count, const float* x, float* y);
  // change *= d gelu(x) / d x.
  void (*gelu_backward)(long count, const float* x, float* change);

  // Row r sees columns 0 to first + r, and none beyond `columns`:
  //   x = e^(scale * (x - top[r])) there and 0 elsewhere, top[r] the largest x that the row sees,
  //   weight[r] = 1 / the row's sum of these exponentials.
  // So weight * x is the softmax. A caller that multiplies by x saves a pass by multiplying by the weight afterwards.
  // Requires: first >= 0, columns >= 1.
  void (*causal_exponentials)(long rows, long first, long columns, float scale, float* x, long x_row,
                              float* top, float* weight);

  // The backward pass of causal_exponentials. In: the x that causal_exponentials() was given, its top and weight;
  // change, d loss / d softmax; dot[r], the sum over c of change * softmax. Out: x, the softmax; change, d loss / d x.
  // Both are 0 in columns that a row does not see.
  void (*causal_backward)(long rows, long first, long columns, float scale, const float* top,
                          const float* weight, const float* dot, float* x, float* change, long row);

  // Down each column: top[c] is its largest x, x becomes e^(x - top[c]), and sum[c] is the sum of the new x. Sums are
  // taken in groups of 32 rows, so that long columns stay exact. Requires: rows >= 1.
  void (*column_exponentials)(long rows, long columns, float* x, long x_row, float* top, float* sum);
};

}  // namespace rumor::models
