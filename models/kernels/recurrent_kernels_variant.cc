// The kernels of models/kernels/recurrent_kernels.h, compiled once per instruction set as
// models/kernels/kernels_variant.cc is. No std headers here, and everything but the table is in an anonymous namespace
// (see kernel_table.h).
#include "models/kernels/recurrent_kernels.h"

#include "models/kernels/sequence_lanes.h"

namespace rumor::models::KERNEL_NAMESPACE {
namespace {

using namespace lanes;

constexpr long group_units = 16;

// Larger exponents would give results below the normal range of a float, where each product takes a hundred cycles.
LANES_INLINE Lanes capped_exponential(Lanes x) {
  const Lanes high = splat(40);
  return exponential(x > high ? high : x);
}

// 1 / (1 + e^-x), at least 4e-18.
LANES_INLINE Lanes logistic_of(Lanes x) {
  return splat(1) / (splat(1) + capped_exponential(-x));
}

LANES_INLINE Lanes tanh_of(Lanes x) {
  return splat(1) - splat(2) / (splat(1) + capped_exponential(x + x));
}

// body(gates, at): the gates of one vector of units and the place of these units in a row of a state.
template <class Body>
LANES_INLINE void each_vector(long groups, float* gates, Body body) {
  for (long group = 0; group < groups; ++group) {
    LANES_UNROLL for (long i = 0; i < group_units; i += width)
        body(gates + group * 4 * group_units + i, group * group_units + i);
  }
}

void lstm_forward(long rows, long groups, float* gates, long gates_row, const float* before, float* cell, float* out,
                  long state_row) {
  constexpr Whole v;
  for (long r = 0; r < rows; ++r, gates += gates_row, before += state_row, cell += state_row, out += state_row) {
    each_vector(groups, gates, [&](float* gate, long at) {
      const Lanes i = logistic_of(v.load(gate)), f = logistic_of(v.load(gate + group_units));
      const Lanes g = tanh_of(v.load(gate + 2 * group_units)), o = logistic_of(v.load(gate + 3 * group_units));
      const Lanes c = fma(f, v.load(before + at), i * g);
      v.store(gate, i);
      v.store(gate + group_units, f);
      v.store(gate + 2 * group_units, g);
      v.store(gate + 3 * group_units, o);
      v.store(cell + at, c);
      v.store(out + at, o * tanh_of(c));
    });
  }
}

void lstm_backward(long rows, long groups, float* gates, long gates_row, const float* before, const float* cell,
                   const float* change, float* cell_change, long state_row) {
  constexpr Whole v;
  const Lanes one = splat(1);
  for (long r = 0; r < rows; ++r, gates += gates_row) {
    each_vector(groups, gates, [&](float* gate, long column) {
      const long at = r * state_row + column;
      const Lanes i = v.load(gate), f = v.load(gate + group_units);
      const Lanes g = v.load(gate + 2 * group_units), o = v.load(gate + 3 * group_units);
      const Lanes h = v.load(change + at), t = tanh_of(v.load(cell + at));
      const Lanes c = fma(h * o, one - t * t, v.load(cell_change + at));
      v.store(gate, c * g * (i * (one - i)));
      v.store(gate + group_units, c * v.load(before + at) * (f * (one - f)));
      v.store(gate + 2 * group_units, c * i * (one - g * g));
      v.store(gate + 3 * group_units, h * t * (o * (one - o)));
      v.store(cell_change + at, c * f);
    });
  }
}

}  // namespace

extern const RecurrentKernels recurrent_table;
const RecurrentKernels recurrent_table = {
    .lstm_forward = lstm_forward,
    .lstm_backward = lstm_backward,
};

}  // namespace rumor::models::KERNEL_NAMESPACE
