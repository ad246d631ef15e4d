// Every variant of the transformer's kernels against the portable one: equal bits, nothing written outside
// the output; and the portable one against the definitions in double.
#include "models/kernels/sequence_kernels.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "models/kernels/kernels.h"
#include "runtime/base/prng.h"

namespace rumor::models {
namespace {

using Floats = std::vector<float>;
constexpr float guard = -12345.678f;
constexpr long guards = 19;  // floats before and after an output

Floats draw(Prng& prng, long count, double size = 4) {
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values)
    value = static_cast<float>(static_cast<double>(prng.between(-100'000, 100'000)) * 1e-5 * size);
  return values;
}

// The same with some infinities, NaNs, zeros, very large and very small numbers.
Floats draw_wild(Prng& prng, long count) {
  Floats values = draw(prng, count);
  constexpr float wild[] = {0.0f,
                            -0.0f,
                            1e-40f,
                            3e38f,
                            -3e38f,
                            200.0f,
                            -200.0f,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
  for (float& value : values) {
    if (prng.chance(1, 6)) value = wild[prng.below(std::size(wild))];
  }
  return values;
}

bool same_bits(const Floats& a, const Floats& b) {
  const auto bits = [](float x) {
    std::uint32_t word;
    std::memcpy(&word, &x, sizeof word);
    return x != x ? 0x7fc00000u : word;  // which NaN it is stays open
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](float x, float y) { return bits(x) == bits(y); });
}

// An output with guards around it.
struct Guarded {
  Floats all;
  explicit Guarded(const Floats& inside) : all(2 * guards, guard) {
    all.insert(all.begin() + guards, inside.begin(), inside.end());
  }
  explicit Guarded(long count) : Guarded(Floats(static_cast<std::size_t>(count), 7.0f)) {}
  float* data() { return all.data() + guards; }
};

// run(kernels) gives all outputs, guards included; every variant must give those of the portable one.
void compare(const char* what, long rows, long columns,
             const std::function<std::vector<Floats>(const SequenceKernels&)>& run) {
  const std::vector<Floats> expected = run(*kernel_variants().front()->sequence);
  for (const KernelTable* table : kernel_variants()) {
    const std::vector<Floats> have = run(*table->sequence);
    for (std::size_t i = 0; i < expected.size(); ++i)
      BOOST_TEST(same_bits(expected[i], have[i]),
                 table->name << " " << what << " " << rows << " x " << columns << ", output " << i);
    for (const Floats& out : have) {
      for (long g = 0; g < guards; ++g)
        BOOST_REQUIRE((out[static_cast<std::size_t>(g)] == guard &&
                       out[out.size() - 1 - static_cast<std::size_t>(g)] == guard));
    }
  }
}

struct Size {
  long rows, columns;
};
constexpr Size sizes[] = {{1, 1},  {2, 3},  {3, 8},   {1, 15},  {5, 16},
                          {4, 17}, {7, 31}, {40, 33}, {2, 100}, {70, 64}};

}  // namespace

BOOST_AUTO_TEST_SUITE(sequence_kernels)

BOOST_AUTO_TEST_CASE(elementwise_kernels_have_equal_bits) {
  Prng prng(1);
  for (const bool is_wild : {false, true}) {
    for (const auto& size : sizes) {
      const long rows = size.rows, columns = size.columns;
      const long count = rows * columns;
      const Floats x = is_wild ? draw_wild(prng, count) : draw(prng, count), change = draw(prng, count),
                   row = draw(prng, columns), factor = draw(prng, count);
      compare("elementwise", rows, columns, [&](const SequenceKernels& k) {
        Guarded sum(count), shifted(count), begun(count), activated(count), back(change), by_row(x),
            by_column(x);
        k.add(count, x.data(), change.data(), sum.data());
        k.add_row(rows, columns, x.data(), row.data(), shifted.data());
        k.add_row(rows, columns, nullptr, row.data(), begun.data());
        k.gelu(count, x.data(), activated.data());
        k.gelu_backward(count, x.data(), back.data());
        k.scale_rows(rows, columns, factor.data(), by_row.data(), columns);
        k.scale_columns(rows, columns, factor.data(), by_column.data(), columns);
        for (long r = 0; r < rows; ++r) {
          for (long c = 0; c < columns; ++c) {
            const auto from = static_cast<std::size_t>(r * columns + c);
            if (!is_wild) BOOST_REQUIRE(shifted.data()[from] == x[from] + row[static_cast<std::size_t>(c)]);
            if (!is_wild) BOOST_REQUIRE(begun.data()[from] == row[static_cast<std::size_t>(c)]);
          }
        }
        return std::vector<Floats>{sum.all,  shifted.all, begun.all,    activated.all,
                                   back.all, by_row.all,  by_column.all};
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(sums_norms_and_exponentials_have_equal_bits) {
  Prng prng(2);
  for (const bool is_wild : {false, true}) {
    for (const auto& size : sizes) {
      const long rows = size.rows, columns = size.columns;
      const long count = rows * columns, wide = columns + 5, first = prng.between(0, 20);
      const auto fill = [&](long n) { return is_wild ? draw_wild(prng, n) : draw(prng, n); };
      const Floats x = fill(count), change = fill(count), gain = draw(prng, columns),
                   bias = draw(prng, columns), strided = fill(rows * wide), dots = draw(prng, rows),
                   moves = fill(rows * wide);
      compare("rows", rows, columns, [&](const SequenceKernels& k) {
        Guarded sums(columns), products(rows), y(count), mean(rows), scale(rows), x_change(change),
            gains(gain), biases(bias);
        k.column_sums(rows, columns, strided.data(), wide, sums.data());
        k.row_dots(rows, columns, strided.data(), wide, x.data(), columns, products.data());
        k.layer_norm(rows, columns, 1e-5f, x.data(), gain.data(), bias.data(), y.data(), mean.data(),
                     scale.data());
        k.layer_norm_backward(rows, columns, x.data(), gain.data(), mean.data(), scale.data(), change.data(),
                              x_change.data(), gains.data(), biases.data());
        Guarded looks(strided), top(rows), weight(rows), back(strided), move(moves);
        k.causal_exponentials(rows, first, columns, 0.3f, looks.data(), wide, top.data(), weight.data());
        k.causal_backward(rows, first, columns, 0.3f, top.data(), weight.data(), dots.data(), back.data(),
                          move.data(), wide);
        Guarded down(strided), tops(columns), totals(columns);
        k.column_exponentials(rows, columns, down.data(), wide, tops.data(), totals.data());
        return std::vector<Floats>{sums.all,  products.all, y.all,     mean.all,  scale.all,  x_change.all,
                                   gains.all, biases.all,   looks.all, top.all,   weight.all, back.all,
                                   move.all,  down.all,     tops.all,  totals.all};
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(kernels_of_a_llama_have_equal_bits) {
  Prng prng(4);
  for (const bool is_wild : {false, true}) {
    for (const auto& size : sizes) {
      const long rows = size.rows, columns = size.columns, count = rows * columns;
      const auto fill = [&](long n) { return is_wild ? draw_wild(prng, n) : draw(prng, n); };
      const Floats x = fill(count), up = fill(count), change = fill(count), gain = draw(prng, columns),
                   cosine = draw(prng, columns, 1), sine = draw(prng, columns, 1), heads = fill(2 * count);
      compare("llama", rows, columns, [&](const SequenceKernels& k) {
        Guarded y(count), scale(rows), x_change(change), gains(gain);
        k.rms_norm(rows, columns, 1e-5f, x.data(), gain.data(), y.data(), scale.data());
        k.rms_norm_backward(rows, columns, x.data(), gain.data(), scale.data(), change.data(), x_change.data(),
                            gains.data());
        Guarded active(count), gate_change(count), up_change(count), turned(heads);
        k.swiglu(count, x.data(), up.data(), active.data());
        k.swiglu_backward(count, x.data(), up.data(), change.data(), gate_change.data(), up_change.data());
        k.rotate(rows, columns, cosine.data(), sine.data(), -1, turned.data());
        return std::vector<Floats>{y.all,           scale.all,     x_change.all, gains.all, active.all,
                                   gate_change.all, up_change.all, turned.all};
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(softmax_looks_back_only_and_sums_to_one) {
  Prng prng(3);
  for (const KernelTable* table : kernel_variants()) {
    const long rows = 9, first = 3, columns = 10, wide = 12;
    const Floats before = draw(prng, rows * wide, 30);
    Floats x = before, top(rows), weight(rows);
    table->sequence->causal_exponentials(rows, first, columns, 0.5f, x.data(), wide, top.data(),
                                         weight.data());
    for (long r = 0; r < rows; ++r) {
      const long seen = std::min(first + r + 1, columns);
      double sum = 0;
      for (long c = 0; c < seen; ++c)
        sum += std::exp(0.5 * static_cast<double>(before[static_cast<std::size_t>(r * wide + c)]));
      for (long c = 0; c < wide; ++c) {
        const auto at = static_cast<std::size_t>(r * wide + c);
        const double expected = c < seen ? std::exp(0.5 * static_cast<double>(before[at])) / sum : 0;
        if (c >= columns) {
          BOOST_TEST(x[at] == before[at]);
        } else {
          BOOST_TEST(std::abs(static_cast<double>(x[at] * weight[static_cast<std::size_t>(r)]) - expected) <
                     1e-6);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(exponentials_are_accurate_over_their_range) {
  const long rows = 4001;
  Floats base(rows);
  for (long r = 0; r < rows; ++r)
    base[static_cast<std::size_t>(r)] = -static_cast<float>(r) * 0.0225f;  // down to -90
  for (const KernelTable* table : kernel_variants()) {
    Floats x = base;
    float top = 0, sum = 0;
    table->sequence->column_exponentials(rows, 1, x.data(), 1, &top, &sum);
    BOOST_TEST(top == 0.0f);
    double expected_sum = 0, worst = 0;
    for (long r = 0; r < rows; ++r) {
      const double at = static_cast<double>(base[static_cast<std::size_t>(r)]),
                   expected = at < -87 ? 0 : std::exp(at);
      expected_sum += expected;
      const double have = static_cast<double>(x[static_cast<std::size_t>(r)]);
      if (expected == 0)
        BOOST_TEST(have == 0);
      else
        worst = std::max(worst, std::abs(have / expected - 1));
    }
    BOOST_TEST(worst < 2e-7);
    BOOST_TEST(std::abs(static_cast<double>(sum) / expected_sum - 1) < 1e-6);
  }
}

// Numbers below the normal range make every product with them a hundred times slower.
BOOST_AUTO_TEST_CASE(gelu_stays_in_the_normal_range_of_a_float) {
  const SequenceKernels& k = *kernels().sequence;
  for (float at = 0.5f; at < 1e6f; at *= 1.01f) {
    const float x = -at;
    float y = 0, change = 1e-6f;
    k.gelu(1, &x, &y);
    k.gelu_backward(1, &x, &change);
    BOOST_TEST_REQUIRE(std::isnormal(y), "gelu(" << x << ") = " << y);
    BOOST_TEST_REQUIRE((change == 0 || std::isnormal(change)), "slope at " << x << ": " << change);
    BOOST_TEST_REQUIRE((at < 10 || std::abs(y) < 1e-10f));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
