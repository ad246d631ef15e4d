// The kernels of models/kernels/sequence_kernels.h, compiled once per instruction set as
// models/kernels/kernels_variant.cc is. No std headers here, and everything but the table is in an anonymous namespace
// (see kernel_table.h).
#include "models/kernels/sequence_kernels.h"

#include "models/kernels/sequence_lanes.h"

namespace rumor::models::KERNEL_NAMESPACE {
namespace {

using namespace lanes;

void add(long count, const float* a, const float* b, float* y) {
  each(count, [&](auto v, long i) { v.store(y + i, v.load(a + i) + v.load(b + i)); });
}

void add_row(long rows, long columns, const float* x, const float* row, float* y) {
  for (long r = 0; r < rows; ++r, y += columns) {
    if (x) {
      add(columns, x + r * columns, row, y);
    } else {
      each(columns, [&](auto v, long c) { v.store(y + c, v.load(row + c)); });
    }
  }
}

void column_sums(long rows, long columns, const float* x, long x_row, float* y) {
  constexpr long vectors = 4;
  long c = 0;
  for (; c + vectors * width <= columns; c += vectors * width) {
    Lanes sums[vectors] = {};
    const float* at = x + c;
    for (long r = 0; r < rows; ++r, at += x_row) {
      LANES_UNROLL for (long i = 0; i < vectors; ++i) sums[i] = sums[i] + Whole{}.load(at + i * width);
    }
    LANES_UNROLL for (long i = 0; i < vectors; ++i) Whole{}.store(y + c + i * width, sums[i]);
  }
  each(columns - c, [&](auto v, long i) {
    Lanes sum = {};
    for (long r = 0; r < rows; ++r) sum = sum + v.load(x + r * x_row + c + i);
    v.store(y + c + i, sum);
  });
}

void scale_rows(long rows, long columns, const float* factor, float* x, long x_row) {
  for (long r = 0; r < rows; ++r, x += x_row) {
    const Lanes f = splat(factor[r]);
    each(columns, [&](auto v, long c) { v.store(x + c, v.load(x + c) * f); });
  }
}

void scale_columns(long rows, long columns, const float* factor, float* x, long x_row) {
  for (long r = 0; r < rows; ++r, x += x_row)
    each(columns, [&](auto v, long c) { v.store(x + c, v.load(x + c) * v.load(factor + c)); });
}

void row_dots(long rows, long columns, const float* a, long a_row, const float* b, long b_row, float* y) {
  for (long r = 0; r < rows; ++r, a += a_row, b += b_row)
    y[r] = sum_over(columns, [&](auto v, long c) { return v.load(a + c) * v.load(b + c); });
}

// ---- layer norm

void layer_norm(long rows, long columns, float epsilon, const float* x, const float* gain, const float* bias,
                float* y, float* mean, float* scale) {
  const float count = static_cast<float>(columns);
  for (long r = 0; r < rows; ++r, x += columns, y += columns) {
    const float middle = sum_over(columns, [&](auto v, long c) { return v.load(x + c); }) / count;
    const Lanes m = splat(middle);
    const float squares = sum_over(columns, [&](auto v, long c) {
      const Lanes off = v.load(x + c, m) - m;
      return off * off;
    });
    const float factor = 1 / __builtin_sqrtf(squares / count + epsilon);
    const Lanes f = splat(factor);
    each(columns, [&](auto v, long c) {
      v.store(y + c, fma((v.load(x + c) - m) * f, v.load(gain + c), v.load(bias + c)));
    });
    mean[r] = middle;
    scale[r] = factor;
  }
}

// With n = (x - mean) * scale and g = gain * change:  d x = scale * (g - mean of g - n * mean of (g * n)).
void layer_norm_backward(long rows, long columns, const float* x, const float* gain, const float* mean,
                         const float* scale, const float* change, float* x_change, float* gain_change,
                         float* bias_change) {
  const float count = static_cast<float>(columns);
  for (long r = 0; r < rows; ++r, x += columns, change += columns, x_change += columns) {
    const Lanes m = splat(mean[r]), f = splat(scale[r]);
    const float g_mean =
        sum_over(columns, [&](auto v, long c) { return v.load(change + c) * v.load(gain + c); }) / count;
    const float gn_mean =
        sum_over(columns,
                 [&](auto v, long c) {
                   return v.load(change + c) * v.load(gain + c) * ((v.load(x + c, m) - m) * f);
                 }) /
        count;
    const Lanes a = splat(g_mean), b = splat(-gn_mean);
    each(columns, [&](auto v, long c) {
      const Lanes n = (v.load(x + c) - m) * f, d = v.load(change + c);
      v.store(gain_change + c, fma(d, n, v.load(gain_change + c)));
      v.store(bias_change + c, d + v.load(bias_change + c));
      const Lanes inner = fma(b, n, d * v.load(gain + c) - a);
      v.store(x_change + c, fma(inner, f, v.load(x_change + c)));
    });
  }
}

// ---- root mean square norm

void rms_norm(long rows, long columns, float epsilon, const float* x, const float* gain, float* y, float* scale) {
  const float count = static_cast<float>(columns);
  for (long r = 0; r < rows; ++r, x += columns, y += columns) {
    const float squares = sum_over(columns, [&](auto v, long c) { return v.load(x + c) * v.load(x + c); });
    scale[r] = 1 / __builtin_sqrtf(squares / count + epsilon);
    const Lanes f = splat(scale[r]);
    each(columns, [&](auto v, long c) { v.store(y + c, v.load(x + c) * f * v.load(gain + c)); });
  }
}

// With n = x * scale and g = gain * change:  d x = scale * (g - n * mean of (g * n)).
void rms_norm_backward(long rows, long columns, const float* x, const float* gain, const float* scale,
                       const float* change, float* x_change, float* gain_change) {
  const float count = static_cast<float>(columns);
  for (long r = 0; r < rows; ++r, x += columns, change += columns, x_change += columns) {
    const Lanes f = splat(scale[r]);
    const float mean = sum_over(columns, [&](auto v, long c) {
      return v.load(change + c) * v.load(gain + c) * (v.load(x + c) * f);
    }) / count;
    const Lanes b = splat(-mean);
    each(columns, [&](auto v, long c) {
      const Lanes n = v.load(x + c) * f, d = v.load(change + c);
      v.store(gain_change + c, fma(d, n, v.load(gain_change + c)));
      v.store(x_change + c, fma(fma(b, n, d * v.load(gain + c)), f, v.load(x_change + c)));
    });
  }
}

// ---- rotary positions

void rotate(long heads, long half, const float* cosine, const float* sine, float direction, float* x) {
  const Lanes sign = splat(direction);
  for (long head = 0; head < heads; ++head, x += 2 * half)
    each(half, [&](auto v, long i) {
      const Lanes a = v.load(x + i), b = v.load(x + half + i), c = v.load(cosine + i), s = v.load(sine + i) * sign;
      v.store(x + i, fma(a, c, splat(-1) * (b * s)));
      v.store(x + half + i, fma(b, c, a * s));
    });
}

// ---- SwiGLU

// 1 / (1 + e^-x), at least 4e-18 for the reason given at logistic() below.
LANES_INLINE Lanes sigmoid(Lanes x) {
  const Lanes high = splat(40), exponent = splat(-1) * x;
  return splat(1) / (splat(1) + exponential(exponent > high ? high : exponent));
}

void swiglu(long count, const float* gate, const float* up, float* y) {
  each(count, [&](auto v, long i) {
    const Lanes g = v.load(gate + i);
    v.store(y + i, g * sigmoid(g) * v.load(up + i));
  });
}

void swiglu_backward(long count, const float* gate, const float* up, const float* change, float* gate_change,
                     float* up_change) {
  each(count, [&](auto v, long i) {
    const Lanes g = v.load(gate + i), s = sigmoid(g), silu = g * s, d = v.load(change + i);
    v.store(gate_change + i, d * v.load(up + i) * fma(silu, splat(1) - s, s));
    v.store(up_change + i, d * silu);
  });
}

// ---- gelu: x times the logistic function of 2 u, u the argument of the tanh; e^(-2 u) = e^(x (a + b x^2)).

constexpr float gelu_a = -1.5957691216057308f, gelu_b = -0.0713548162726f;

// The result is at least 4e-18. Arguments far below zero would otherwise give results below the normal range of a
// float, where each product takes a hundred cycles. A trained network has many such values: its steps became five times
// slower.
LANES_INLINE Lanes logistic(Lanes x, Lanes square) {
  const Lanes high = splat(40), exponent = x * fma(square, splat(gelu_b), splat(gelu_a));
  return splat(1) / (splat(1) + exponential(exponent > high ? high : exponent));
}

void gelu(long count, const float* x, float* y) {
  each(count, [&](auto v, long i) {
    const Lanes here = v.load(x + i);
    v.store(y + i, here * logistic(here, here * here));
  });
}

void gelu_backward(long count, const float* x, float* change) {
  each(count, [&](auto v, long i) {
    const Lanes here = v.load(x + i), square = here * here, s = logistic(here, square);
    const Lanes inner = here * fma(square, splat(-3 * gelu_b), splat(-gelu_a));  // x times the slope of 2 u
    v.store(change + i, v.load(change + i) * fma(s * (splat(1) - s), inner, s));
  });
}

// ---- attention

void causal_exponentials(long rows, long first, long columns, float scale, float* x, long x_row, float* top,
                         float* weight) {
  const Lanes s = splat(scale);
  for (long r = 0; r < rows; ++r, x += x_row) {
    const long seen = first + r + 1 < columns ? first + r + 1 : columns;
    top[r] = maximum_over(seen, x);
    const Lanes t = splat(top[r]), least = splat(-__builtin_inff());
    const float sum = sum_over(seen, [&](auto v, long c) {
      const Lanes e = exponential((v.load(x + c, least) - t) * s);
      v.store(x + c, e);
      return e;
    });
    weight[r] = 1 / sum;
    each(columns - seen, [&](auto v, long c) { v.store(x + seen + c, Lanes{}); });
  }
}

void causal_backward(long rows, long first, long columns, float scale, const float* top, const float* weight,
                     const float* dot, float* x, float* change, long row) {
  const Lanes s = splat(scale);
  for (long r = 0; r < rows; ++r, x += row, change += row) {
    const long seen = first + r + 1 < columns ? first + r + 1 : columns;
    const Lanes t = splat(top[r]), w = splat(weight[r]), d = splat(dot[r]);
    each(seen, [&](auto v, long c) {
      const Lanes p = exponential((v.load(x + c) - t) * s) * w;
      v.store(x + c, p);
      v.store(change + c, p * (v.load(change + c) - d) * s);
    });
    each(columns - seen, [&](auto v, long c) {
      v.store(x + seen + c, Lanes{});
      v.store(change + seen + c, Lanes{});
    });
  }
}

// ---- cross-entropy

void column_exponentials(long rows, long columns, float* x, long x_row, float* top, float* sum) {
  constexpr long group = 32;
  each(columns, [&](auto v, long c) {
    Lanes largest = v.load(x + c);
    for (long r = 1; r < rows; ++r) {
      const Lanes next = v.load(x + r * x_row + c);
      largest = next > largest ? next : largest;
    }
    Lanes total = {};
    for (long r0 = 0; r0 < rows; r0 += group) {
      Lanes part = {};
      for (long r = r0; r < rows && r < r0 + group; ++r) {
        float* at = x + r * x_row + c;
        const Lanes e = exponential(v.load(at) - largest);
        v.store(at, e);
        part = part + e;
      }
      total = total + part;
    }
    v.store(top + c, largest);
    v.store(sum + c, total);
  });
}

}  // namespace

extern const SequenceKernels sequence_table;
const SequenceKernels sequence_table = {
    .add = add,
    .add_row = add_row,
    .column_sums = column_sums,
    .scale_rows = scale_rows,
    .scale_columns = scale_columns,
    .row_dots = row_dots,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .rms_norm = rms_norm,
    .rms_norm_backward = rms_norm_backward,
    .rotate = rotate,
    .swiglu = swiglu,
    .swiglu_backward = swiglu_backward,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
    .causal_exponentials = causal_exponentials,
    .causal_backward = causal_backward,
    .column_exponentials = column_exponentials,
};

}  // namespace rumor::models::KERNEL_NAMESPACE
