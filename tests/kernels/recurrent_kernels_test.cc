// Every variant of the LSTM's kernels against the portable one: equal bits, nothing written outside the output; and the
// portable one against the definitions in double.
#include "models/kernels/recurrent_kernels.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "models/kernels/kernels.h"
#include "runtime/base/prng.h"

namespace rumor::models {
namespace {

using Floats = std::vector<float>;

struct CellArrays {
  long rows, groups, gates_row, state_row;
  Floats gates, before, cell, out, change, cell_change;

  // Rows have gaps, which no kernel may touch. wild: with infinities, NaNs and very large and small numbers.
  CellArrays(Prng& prng, long rows_wanted, long groups_wanted, bool wild)
      : rows(rows_wanted), groups(groups_wanted), gates_row(groups * 64 + 5), state_row(groups * 16 + 3) {
    for (Floats* states : {&before, &cell, &out, &change, &cell_change}) *states = random(prng, state_row, wild);
    gates = random(prng, gates_row, wild);
  }

  Floats random(Prng& prng, long row, bool wild) const {
    constexpr float extremes[] = {0.0f, -0.0f, 1e-40f, 3e38f, -3e38f, 200.0f, -200.0f,
                                  std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN()};
    Floats values(static_cast<std::size_t>(rows * row));
    for (float& value : values) {
      value = static_cast<float>(prng.between(-100'000, 100'000)) * 4e-5f;
      if (wild && prng.chance(1, 6)) value = extremes[prng.below(std::size(extremes))];
    }
    return values;
  }

  void forward(const RecurrentKernels& k) {
    k.lstm_forward(rows, groups, gates.data(), gates_row, before.data(), cell.data(), out.data(), state_row);
  }
  void backward(const RecurrentKernels& k) {
    k.lstm_backward(rows, groups, gates.data(), gates_row, before.data(), cell.data(), change.data(),
                    cell_change.data(), state_row);
  }
};

bool same_values(const Floats& a, const Floats& b) {
  const auto bits = [](float x) {
    std::uint32_t word;
    std::memcpy(&word, &x, sizeof word);
    return x != x ? 0x7fc00000u : word;  // which NaN it is stays open
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](float x, float y) { return bits(x) == bits(y); });
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

BOOST_AUTO_TEST_SUITE(recurrent_kernels)

BOOST_AUTO_TEST_CASE(variants_give_the_bits_of_the_portable_one) {
  for (const bool wild : {false, true}) {
    for (const long rows : {0l, 1l, 7l}) {
      for (const long groups : {0l, 1l, 3l}) {
        Prng prng(static_cast<std::uint64_t>(rows * 10 + groups));
        const CellArrays start(prng, rows, groups, wild);
        CellArrays expected = start;
        const RecurrentKernels& portable = *kernel_variants().front()->recurrent;
        expected.forward(portable);
        const CellArrays middle = expected;
        expected.backward(portable);
        for (const KernelTable* table : kernel_variants()) {
          CellArrays have = start;
          have.forward(*table->recurrent);
          BOOST_TEST(same_values(have.gates, middle.gates), table->name << " " << rows << " x " << groups);
          BOOST_TEST(same_values(have.cell, middle.cell), table->name << " " << rows << " x " << groups);
          BOOST_TEST(same_values(have.out, middle.out), table->name << " " << rows << " x " << groups);
          have.backward(*table->recurrent);
          BOOST_TEST(same_values(have.gates, expected.gates), table->name << " " << rows << " x " << groups);
          BOOST_TEST(same_values(have.cell_change, expected.cell_change), table->name << " " << rows);
          BOOST_TEST(same_values(have.before, start.before));
          BOOST_TEST(same_values(have.change, start.change));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(gaps_between_rows_are_not_touched) {
  Prng prng(2);
  const CellArrays start(prng, 4, 2, false);
  for (const KernelTable* table : kernel_variants()) {
    CellArrays have = start;
    have.forward(*table->recurrent);
    have.backward(*table->recurrent);
    for (long row = 0; row < 4; ++row) {
      for (long gap = 128; gap < have.gates_row; ++gap) {
        const auto at = static_cast<std::size_t>(row * have.gates_row + gap);
        BOOST_TEST(have.gates[at] == start.gates[at]);
      }
      for (long gap = 32; gap < have.state_row; ++gap) {
        const auto at = static_cast<std::size_t>(row * have.state_row + gap);
        BOOST_TEST((have.cell[at] == start.cell[at] && have.out[at] == start.out[at]));
        BOOST_TEST(have.cell_change[at] == start.cell_change[at]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_portable_one_is_the_definition) {
  Prng prng(3);
  CellArrays have(prng, 3, 2, false);
  const CellArrays start = have;
  const RecurrentKernels& portable = *kernel_variants().front()->recurrent;
  have.forward(portable);
  const CellArrays middle = have;
  have.backward(portable);
  double worst = 0;
  const auto compare = [&](float value, double wanted) {
    worst = std::max(worst, std::abs(static_cast<double>(value) - wanted) / (1 + std::abs(wanted)));
  };
  for (long row = 0; row < 3; ++row) {
    for (long unit = 0; unit < 32; ++unit) {
      const auto gate = [&](long which) {
        return static_cast<std::size_t>(row * start.gates_row + unit / 16 * 64 + which * 16 + unit % 16);
      };
      const auto at = static_cast<std::size_t>(row * start.state_row + unit);
      const auto sum = [&](long which) { return static_cast<double>(start.gates[gate(which)]); };
      const double i = logistic(sum(0)), f = logistic(sum(1)), g = std::tanh(sum(2)), o = logistic(sum(3));
      const double before = static_cast<double>(start.before[at]), cell = f * before + i * g, t = std::tanh(cell);
      compare(middle.cell[at], cell);
      compare(middle.out[at], o * t);
      const double change = static_cast<double>(start.change[at]);
      const double c = static_cast<double>(start.cell_change[at]) + change * o * (1 - t * t);
      compare(have.gates[gate(0)], c * g * i * (1 - i));
      compare(have.gates[gate(1)], c * before * f * (1 - f));
      compare(have.gates[gate(2)], c * i * (1 - g * g));
      compare(have.gates[gate(3)], change * t * o * (1 - o));
      compare(have.cell_change[at], c * f);
    }
  }
  BOOST_TEST(worst < 1e-6);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
