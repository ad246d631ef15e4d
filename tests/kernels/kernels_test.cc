// Every kernel variant of this machine against the portable one: equal bits, nothing written outside the
// output.
//
// And the portable one against the definition, written out here as plain loops.
#include "models/kernels/kernels.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "runtime/base/kernel_choice.h"
#include "runtime/base/prng.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

// The range of values that fills the inputs.
enum class Fill { small, wide, extreme };

constexpr float guard = -12345.678f;
constexpr long guards = 33;  // floats before and after an output; odd, so outputs are not aligned

float draw(Prng& prng, Fill fill) {
  const auto uniform = static_cast<float>(prng.between(-1'000'000, 1'000'000)) * 1e-6f;
  if (fill == Fill::small) return uniform;
  if (fill == Fill::wide) return std::ldexp(uniform, static_cast<int>(prng.between(-40, 40)));
  constexpr float values[] = {0.0f,
                              -0.0f,
                              1.0f,
                              -1.0f,
                              std::numeric_limits<float>::max(),
                              std::numeric_limits<float>::lowest(),
                              std::numeric_limits<float>::min(),
                              std::numeric_limits<float>::denorm_min(),
                              -std::numeric_limits<float>::denorm_min(),
                              std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN(),
                              1e-30f,
                              1e30f};
  return values[prng.below(std::size(values))];
}

std::vector<float> draw_many(Prng& prng, Fill fill, long count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = draw(prng, fill);
  return values;
}

std::uint32_t bits(float x) {
  std::uint32_t word;
  std::memcpy(&word, &x, sizeof word);
  return x != x ? 0x7fc00000u : word;  // which NaN it is stays open
}

// Index of the first difference in bits, or -1.
long first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (bits(a[i]) != bits(b[i])) return static_cast<long>(i);
  }
  return -1;
}

struct Shape {
  long rows, columns, depth;
  bool a_transposed;  // a is stored [depth][rows]
  long b_gap, y_gap;  // floats between rows of b and of y
};

// Inputs of one matmul; the output area begins and ends with guards, and has guards between its rows.
struct Case {
  Shape shape;
  Start start;
  std::vector<float> a, b, y;

  Case(Prng& prng, Fill fill, Shape s, Start st) : shape(s), start(st) {
    a = draw_many(prng, fill, s.rows * s.depth);
    b = draw_many(prng, fill, s.depth * (s.columns + s.b_gap));
    y.assign(static_cast<std::size_t>(s.rows * (s.columns + s.y_gap) + 2 * guards), guard);
    for (long r = 0; r < s.rows; ++r) {
      for (long c = 0; c < s.columns; ++c) y[at(r, c)] = draw(prng, fill);
    }
  }
  std::size_t at(long r, long c) const {
    return static_cast<std::size_t>(guards + r * (shape.columns + shape.y_gap) + c);
  }
  MatrixView view() const {
    return shape.a_transposed ? MatrixView{a.data(), 1, shape.rows} : MatrixView{a.data(), shape.depth, 1};
  }
  std::vector<float> run(const KernelTable& table) const {
    std::vector<float> out = y;
    table.matmul(shape.rows, shape.columns, shape.depth, view(), b.data(), shape.columns + shape.b_gap,
                 out.data() + guards, shape.columns + shape.y_gap, start);
    return out;
  }
  // The definition.
  std::vector<float> expected() const {
    std::vector<float> out = y;
    const MatrixView m = view();
    for (long r = 0; r < shape.rows; ++r) {
      for (long c = 0; c < shape.columns; ++c) {
        float sum = start == Start::zero ? 0.0f : y[at(r, c)];
        for (long k = 0; k < shape.depth; ++k)
          sum = std::fma(m.data[r * m.row + k * m.column],
                         b[static_cast<std::size_t>(k * (shape.columns + shape.b_gap) + c)], sum);
        out[at(r, c)] = sum;
      }
    }
    return out;
  }
  std::string text(Fill fill, const KernelTable& table) const {
    return str(table.name, ": ", shape.rows, " x ", shape.columns, " x ", shape.depth, " transposed ",
               shape.a_transposed, " start ", static_cast<int>(start), " fill ", static_cast<int>(fill));
  }
};

void compare_all(Prng& prng, Shape shape) {
  for (const Fill fill : {Fill::small, Fill::wide, Fill::extreme}) {
    for (const Start start : {Start::zero, Start::output}) {
      const Case one(prng, fill, shape, start);
      const std::vector<float> expected = one.expected();
      for (const KernelTable* table : kernel_variants()) {
        const long at = first_difference(expected, one.run(*table));
        BOOST_CHECK_MESSAGE(at < 0, one.text(fill, *table) << ": differs at " << at - guards);
      }
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernels_suite)

BOOST_AUTO_TEST_CASE(matmul_has_equal_bits_at_every_small_size) {
  Prng prng(1);
  for (long rows : {0, 1, 2, 7, 17}) {
    for (long columns : {0, 1, 3, 15, 16, 17, 33, 50}) {
      for (long depth : {0, 1, 2, 5})
        compare_all(prng, {rows, columns, depth, (rows + columns) % 2 == 0, 0, 0});
    }
  }
}

BOOST_AUTO_TEST_CASE(matmul_has_equal_bits_at_random_sizes_and_strides) {
  Prng prng(2);
  for (int i = 0; i < 40; ++i) {
    const Shape shape{prng.between(1, 40), prng.between(1, 120), prng.between(1, 60),
                      prng.chance(1, 2),   prng.between(0, 5),   prng.between(0, 5)};
    compare_all(prng, shape);
  }
}

// Depths around the length at which sums are cut into pieces.
BOOST_AUTO_TEST_CASE(matmul_goes_on_where_a_piece_ended) {
  Prng prng(3);
  for (long depth : {255, 256, 257, 512, 784}) compare_all(prng, {5, 19, depth, depth % 2 == 0, 0, 0});
}

// Large products go tile by tile, copy the panels of b and, where it is the transposed of a matrix, pack a.
BOOST_AUTO_TEST_CASE(matmul_has_equal_bits_where_tiles_and_panels_change) {
  Prng prng(6);
  compare_all(prng, {390, 3, 140, false, 0, 0});
  compare_all(prng, {25, 530, 10, false, 3, 1});
  compare_all(prng, {390, 200, 9, true, 3, 1});
  compare_all(prng, {29, 193, 300, true, 0, 2});
  compare_all(prng, {45, 150, 300, false, 2, 1});
  compare_all(prng, {24, 97, 290, false, 0, 3});
}

BOOST_AUTO_TEST_CASE(gathered_matmul_is_the_product_of_what_it_gathers) {
  Prng prng(7);
  for (const auto& [rows, columns, depth] : std::vector<std::array<long, 3>>{
           {0, 3, 2}, {5, 4, 0}, {1, 1, 1}, {13, 32, 27}, {30, 70, 300}, {7, 50, 9}}) {
    const std::vector<float> data = draw_many(prng, Fill::wide, 200),
                             b = draw_many(prng, Fill::wide, depth * columns);
    std::vector<int> row_at, column_at;
    for (long r = 0; r < rows; ++r) row_at.push_back(static_cast<int>(prng.below(100)));
    for (long k = 0; k < depth; ++k) column_at.push_back(static_cast<int>(prng.below(100)));
    std::vector<float> dense;
    for (const int r : row_at)
      for (const int k : column_at) dense.push_back(data[static_cast<std::size_t>(r + k)]);
    for (const KernelTable* table : kernel_variants()) {
      std::vector<float> y(static_cast<std::size_t>(rows * columns) + 2 * guards, guard), expected = y;
      table->matmul_gathered(rows, columns, depth, {data.data(), row_at.data(), column_at.data()}, b.data(),
                             columns, y.data() + guards, columns, Start::zero);
      kernel_variants().front()->matmul(rows, columns, depth, {dense.data(), depth, 1}, b.data(), columns,
                                        expected.data() + guards, columns, Start::zero);
      BOOST_TEST(first_difference(expected, y) == -1, table->name << " " << rows << " x " << columns);
    }
  }
}

BOOST_AUTO_TEST_CASE(matmul_sums_in_ascending_order_with_one_rounding_per_step) {
  // 2^24 + 1 + 1: left to right each 1 is lost; any other order would keep them.
  const float a[] = {16777216.0f, 1.0f, 1.0f}, b[] = {1.0f, 1.0f, 1.0f};
  // (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24 only if the product is not rounded first.
  const float c[] = {1.0f, 1.000244140625f}, d[] = {-1.00048828125f, 1.000244140625f};
  for (const KernelTable* table : kernel_variants()) {
    float y = 0;
    table->matmul(1, 1, 3, {a, 3, 1}, b, 1, &y, 1, Start::zero);
    BOOST_TEST(y == 16777216.0f);
    table->matmul(1, 1, 2, {c, 2, 1}, d, 1, &y, 1, Start::zero);
    BOOST_TEST(y == std::ldexp(1.0f, -24));
  }
}

BOOST_AUTO_TEST_CASE(transpose_moves_every_element) {
  Prng prng(4);
  for (const auto& [rows, columns] :
       std::vector<std::pair<long, long>>{{1, 1}, {1, 9}, {16, 784}, {33, 17}, {5, 40}, {20, 31}}) {
    for (const long gap : {0, 3}) {  // between two rows; stays as it is in y
      const long x_row = columns + gap, y_row = rows + gap;
      const std::vector<float> x = draw_many(prng, Fill::extreme, rows * x_row);
      for (const KernelTable* table : kernel_variants()) {
        std::vector<float> y(static_cast<std::size_t>(columns * y_row) + 2 * guards, guard), expected = y;
        table->transpose(rows, columns, x.data(), x_row, y.data() + guards, y_row);
        for (long r = 0; r < rows; ++r) {
          for (long c = 0; c < columns; ++c)
            expected[static_cast<std::size_t>(guards + c * y_row + r)] = x[static_cast<std::size_t>(r * x_row + c)];
        }
        BOOST_TEST(first_difference(expected, y) == -1, table->name << " " << rows << " x " << columns << " + " << gap);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(elementwise_kernels_follow_their_definition) {
  Prng prng(5);
  for (long count : {0, 1, 7, 16, 31, 1000}) {
    const std::vector<float> x = draw_many(prng, Fill::extreme, count),
                             change = draw_many(prng, Fill::wide, count);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count));
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(prng.below(256));
    for (const KernelTable* table : kernel_variants()) {
      const auto size = static_cast<std::size_t>(count) + 2 * guards;
      std::vector<float> relu(size, guard), back(size, guard), normal(size, guard);
      std::copy(x.begin(), x.end(), relu.begin() + guards);
      std::copy(change.begin(), change.end(), back.begin() + guards);
      std::vector<float> relu_expected = relu, back_expected = back, normal_expected = normal;
      for (std::size_t i = 0; i < x.size(); ++i) {
        relu_expected[guards + i] = x[i] < 0 ? 0.0f : x[i];
        back_expected[guards + i] = x[i] > 0 ? change[i] : 0.0f;
        const float centred = static_cast<float>(bytes[i]) - 72.94f;
        normal_expected[guards + i] = centred * 0.0111f;
      }
      table->relu(count, relu.data() + guards);
      table->relu_backward(count, x.data(), back.data() + guards);
      table->normalise(count, bytes.data(), 72.94f, 0.0111f, normal.data() + guards);
      BOOST_TEST(first_difference(relu_expected, relu) == -1, table->name << " relu " << count);
      BOOST_TEST(first_difference(back_expected, back) == -1, table->name << " relu_backward " << count);
      BOOST_TEST(first_difference(normal_expected, normal) == -1, table->name << " normalise " << count);
    }
  }
}

BOOST_AUTO_TEST_CASE(column_kernels_follow_their_definition) {
  Prng prng(8);
  for (const auto& [rows, columns] : std::vector<std::array<long, 2>>{{0, 4}, {1, 1}, {5, 16}, {9, 35}}) {
    const long count = rows * columns;
    const std::vector<float> x = draw_many(prng, Fill::wide, count), z = draw_many(prng, Fill::wide, count);
    const std::vector<float> a = draw_many(prng, Fill::small, columns),
                             b = draw_many(prng, Fill::small, columns),
                             c = draw_many(prng, Fill::small, columns);
    const float factor = a[0];
    std::vector<float> dots(static_cast<std::size_t>(columns)), scaled(x), blended(z), sum(z);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t at = i % dots.size();
      dots[at] = dots[at] + (x[i] - a[at]) * (z[i] - b[at]);
      scaled[i] = x[i] * a[at] + b[at];
      blended[i] = z[i] * c[at] + (x[i] * a[at] + b[at]);
      sum[i] = std::fma(factor, x[i], z[i]);
    }
    for (const KernelTable* table : kernel_variants()) {
      std::vector<float> got(dots.size(), guard), y(x.size(), guard);
      table->centred_dots(rows, columns, x.data(), a.data(), z.data(), b.data(), got.data());
      BOOST_TEST(first_difference(dots, got) == -1, table->name << " centred_dots");
      table->scale_columns(rows, columns, x.data(), a.data(), b.data(), y.data());
      BOOST_TEST(first_difference(scaled, y) == -1, table->name << " scale_columns");
      y = z;
      table->blend_columns(rows, columns, x.data(), a.data(), b.data(), c.data(), y.data());
      BOOST_TEST(first_difference(blended, y) == -1, table->name << " blend_columns");
      y = z;
      table->axpy(count, factor, x.data(), y.data());
      BOOST_TEST(first_difference(sum, y) == -1, table->name << " axpy");
    }
  }
}

BOOST_AUTO_TEST_CASE(max_pooling_has_equal_bits) {
  Prng prng(9);
  for (const auto& [height, width, channels] :
       std::vector<std::array<long, 3>>{{2, 2, 1}, {5, 6, 3}, {4, 7, 33}}) {
    for (const Fill fill : {Fill::small, Fill::extreme}) {
      const long count = height * width * channels, pooled = (height / 2) * (width / 2) * channels;
      const std::vector<float> x = draw_many(prng, fill, count),
                               change = draw_many(prng, Fill::small, pooled);
      std::vector<float> y, back;
      for (const KernelTable* table : kernel_variants()) {
        std::vector<float> my_y(change.size() + 2 * guards, guard), my_back(x.size() + 2 * guards, guard);
        table->max_pool(height, width, channels, x.data(), my_y.data() + guards);
        table->max_pool_backward(height, width, channels, x.data(), change.data(), my_back.data() + guards);
        if (y.empty()) y = my_y, back = my_back;
        BOOST_TEST(first_difference(y, my_y) == -1, table->name);
        BOOST_TEST(first_difference(back, my_back) == -1, table->name);
        BOOST_TEST(my_y.back() == guard);
        BOOST_TEST(my_back.back() == guard);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(variants_are_selected_by_name) {
  for (const KernelTable* table : kernel_variants()) {
    BOOST_TEST(choose_kernels(table->name).ok());
    BOOST_TEST(&kernels() == table);
  }
  const Result<void> refused = choose_kernels("sse9");
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == Errc::usage));
  BOOST_TEST(refused.error().text.find("portable") != std::string::npos);
  BOOST_TEST(&kernels() == kernel_variants().back());
  BOOST_TEST(choose_kernels("").ok());
  BOOST_TEST(&kernels() == kernel_variants().back());
  BOOST_TEST(std::string(kernel_variants().front()->name) == "portable");
  std::string names;
  for (const KernelTable* table : kernel_variants()) names += str(" ", table->name);
  BOOST_TEST_MESSAGE("compared:" << names);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
