// The kernels of models, but for attention: against models/, bit for bit where gpu/device/model_table.h promises that.
#include <boost/test/unit_test.hpp>
#include <numeric>

#include "gpu/device/clip.h"
#include "models/layers/embedding.h"
#include "models/layers/layer_norm.h"
#include "models/optimizers/optimizer.h"
#include "tests/gpu/models/model_support.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_model_kernels)

namespace {

// Rows and columns of all kinds: none, one, odd, more than a chunk, a block, a warp, 32 chunks.
constexpr Size sizes[] = {{0, 5},  {5, 0},   {1, 1},    {1, 16},  {2, 15},   {3, 17},  {7, 33},
                          {64, 3}, {65, 40}, {63, 129}, {9, 257}, {130, 64}, {200, 7}, {8, 1000}, {2200, 3},
                          {3, 768}, {9, 700},   {2, 1024}, {2, 1300}};

// models' column sums, in the chunks of the slot.
Floats column_sums(Size size, const Floats& x) {
  const std::size_t chunks = chunks_of(size.rows);
  Floats partial(chunks * size.columns), sum(size.columns);
  for (std::size_t k = 0; k < chunks; ++k) {
    const std::size_t first = k * chunk_rows, rows = std::min<std::size_t>(chunk_rows, size.rows - first);
    cpu().column_sums(static_cast<long>(rows), size.columns, x.data() + first * size.columns, size.columns,
                      partial.data() + k * size.columns);
  }
  cpu().column_sums(static_cast<long>(chunks), size.columns, partial.data(), size.columns, sum.data());
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_CASE(bias_and_relu) {
  each_size(41, sizes, [](const Target& target, Size size, Prng& prng, std::size_t skip) {
    const Floats bias = drawn(prng, size.columns);
    Floats x = drawn_wild(prng, size.count());
    const Guarded<float> on_x(target, x, skip), on_bias(target, bias, skip);
    target.table().model.bias_relu(target.device(), size.matrix(), on_bias.data(), on_x.data());
    cpu().add_row(size.rows, size.columns, x.data(), bias.data(), x.data());
    models::kernels().relu(static_cast<long>(size.count()), x.data());
    BOOST_TEST(same_bits(on_x.read(), x));
    Floats change = drawn_wild(prng, size.count());
    const Guarded<float> on_change(target, change, skip);
    target.table().model.relu_backward(target.device(), size.count(), on_x.data(), on_change.data());
    models::kernels().relu_backward(static_cast<long>(size.count()), x.data(), change.data());
    BOOST_TEST(same_bits(on_change.read(), change));
  });
}

BOOST_AUTO_TEST_CASE(bias_and_gelu) {
  each_size(42, sizes, [](const Target& target, Size size, Prng& prng, std::size_t skip) {
    const Floats bias = drawn(prng, size.columns);
    Floats x = drawn_wild(prng, size.count()), y(size.count());
    const Guarded<float> on_x(target, x, skip), on_bias(target, bias), on_y(target, size.count(), skip);
    target.table().model.bias_gelu(target.device(), size.matrix(), on_bias.data(), on_x.data(), on_y.data());
    cpu().add_row(size.rows, size.columns, x.data(), bias.data(), x.data());
    cpu().gelu(static_cast<long>(size.count()), x.data(), y.data());
    BOOST_TEST(same_bits(on_x.read(), x));
    BOOST_TEST(same_bits(on_y.read(), y));
    Floats change = drawn_wild(prng, size.count());
    const Guarded<float> on_change(target, change, skip);
    target.table().model.gelu_backward(target.device(), size.count(), on_x.data(), on_change.data());
    cpu().gelu_backward(static_cast<long>(size.count()), x.data(), change.data());
    BOOST_TEST(same_bits(on_change.read(), change));
  });
}

// In small steps: what is rounded otherwise than on the CPU shows in few values only.
BOOST_AUTO_TEST_CASE(gelu_from_end_to_end) {
  const Target target;
  constexpr std::uint32_t count = 60'000;
  Floats x(count), y(count);
  for (std::uint32_t i = 0; i < count; ++i) x[i] = -15.0f + 30.0f * static_cast<float>(i) / count;
  const Guarded<float> on_x(target, x), on_y(target, count), bias(target, Floats{0.0f});
  target.table().model.bias_gelu(target.device(), {count, 1}, bias.data(), on_x.data(), on_y.data());
  cpu().gelu(count, x.data(), y.data());
  BOOST_TEST(same_bits(on_y.read(), y));
}

BOOST_AUTO_TEST_CASE(sums_of_columns) {
  each_size(43, sizes, [](const Target& target, Size size, Prng& prng, std::size_t skip) {
    const Floats x = drawn(prng, size.count());
    const Guarded<float> on_x(target, x, skip), partial(target, chunks_of(size.rows) * size.columns, skip),
        sum(target, size.columns, skip);
    target.table().model.column_sums(target.device(), size.matrix(), on_x.data(), partial.data(), sum.data());
    BOOST_TEST(same_bits(sum.read(), column_sums(size, x)));
    partial.read();
  });
}

BOOST_AUTO_TEST_CASE(gradients_are_cut_to_a_norm) {
  Prng prng(48);
  std::uint64_t order = 0;
  for (const std::size_t count : {std::size_t{1}, std::size_t{300}, square_stretch, 3 * square_stretch + 77}) {
    const Target target(order++);
    const Floats x = drawn(prng, count);
    const Guarded<float> on_x(target, x, prng.below(4));
    const Guarded<double> partial(target, square_partials(count)), total(target, 1);
    const ModelTable& model = target.table().model;
    model.square_sum(target.device(), count, on_x.data(), partial.data(), total.data());
    double squares = 0;
    for (const float value : x) squares += double{value} * value;
    BOOST_TEST(std::abs(total.read()[0] - squares) <= 1e-13 * squares);
    partial.read();

    const DeviceArray<float> gradient = copied(target, x);
    for (const double share : {2.0, 0.25}) {  // longer than the gradient, shorter
      Floats expected = x, found(count);
      const double norm = models::clip_by_norm(expected, share * std::sqrt(squares));
      const Result<double> had = DeviceClip(*target.gpu, share * std::sqrt(squares)).cut(gradient, count);
      BOOST_TEST_REQUIRE(had.ok());
      BOOST_TEST(std::abs(*had - norm) <= 1e-12 * norm);
      BOOST_TEST_REQUIRE(gradient.read(found.data(), count).ok());
      BOOST_TEST(distance(found, expected) < 1e-7);
    }
  }
}

BOOST_AUTO_TEST_CASE(layer_norm_with_and_without_a_sum) {
  each_size(44, sizes, [](const Target& target, Size size, Prng& prng, std::size_t skip) {
    if (size.columns == 0) return;
    const bool sums = prng.chance(1, 2);
    const Floats x = drawn(prng, size.count(), 3), more = drawn(prng, size.count()), gain = drawn(prng, size.columns),
                 bias = drawn(prng, size.columns);
    Floats normed = x, expected(size.count());
    if (sums) cpu().add(static_cast<long>(x.size()), x.data(), more.data(), normed.data());
    models::LayerNorm norm;
    norm.forward(nullptr, size.rows, size.columns, normed.data(), gain.data(), bias.data(), expected.data());
    const Guarded<float> on_x(target, x, skip), on_more(target, more, skip), sum(target, size.count(), skip),
        on_gain(target, gain), on_bias(target, bias), y(target, size.count(), skip), mean(target, size.rows),
        scale(target, size.rows);
    const LayerNormArgs args{size.matrix(), on_x.data(),    sums ? on_more.data() : nullptr,
                             sum.data(),    on_gain.data(), on_bias.data(),
                             y.data(),      mean.data(),    scale.data()};
    target.table().model.layer_norm(target.device(), &args);
    BOOST_TEST(same_bits(y.read(), expected));
    if (sums) BOOST_TEST(same_bits(sum.read(), normed));
    BOOST_TEST(same_bits(on_x.read(), x));

    const Floats change = drawn(prng, size.count());
    Floats x_change = drawn(prng, size.count()), gain_change(size.columns), bias_change(size.columns);
    const Guarded<float> on_change(target, change, skip), on_x_change(target, x_change, skip),
        partial(target, chunks_of(size.rows) * 2 * size.columns, skip), on_gain_change(target, size.columns, skip),
        on_bias_change(target, size.columns);
    const LayerNormChange back{size.matrix(),         sums ? sum.data() : on_x.data(),
                               on_gain.data(),        mean.data(),
                               scale.data(),          on_change.data(),
                               on_x_change.data(),    nullptr,
                               partial.data(),
                               on_gain_change.data(), on_bias_change.data()};
    target.table().model.layer_norm_backward(target.device(), &back);
    norm.backward(nullptr, size.rows, size.columns, normed.data(), gain.data(), change.data(), x_change.data(),
                  gain_change.data(), bias_change.data());
    BOOST_TEST(same_bits(on_x_change.read(), x_change));
    BOOST_TEST(same_bits(on_gain_change.read(), gain_change));
    BOOST_TEST(same_bits(on_bias_change.read(), bias_change));
    partial.read();
    mean.read();
    scale.read();
  });
}

// The residual stream: the sum takes the place of what was added.
BOOST_AUTO_TEST_CASE(a_sum_in_place) {
  Prng prng(45);
  const Target target(4);
  constexpr Size size{9, 50};
  const Floats x = drawn(prng, size.count()), more = drawn(prng, size.count()), gain(50, 1.0f), bias(50, 0.0f);
  const Guarded<float> on_x(target, x), on_more(target, more), on_gain(target, gain), on_bias(target, bias),
      y(target, size.count()), mean(target, 9), scale(target, 9);
  const LayerNormArgs args{size.matrix(),  on_x.data(), on_more.data(), on_x.data(), on_gain.data(),
                           on_bias.data(), y.data(),    mean.data(),    scale.data()};
  target.table().model.layer_norm(target.device(), &args);
  Floats sum = x;
  cpu().add(static_cast<long>(sum.size()), sum.data(), more.data(), sum.data());
  BOOST_TEST(same_bits(on_x.read(), sum));
}

// By its definition, in double.
BOOST_AUTO_TEST_CASE(cross_entropy_and_its_gradient) {
  each_size(46, sizes, [](const Target& target, Size size, Prng& prng, std::size_t skip) {
    if (size.columns == 0) return;
    Floats x = drawn(prng, size.count(), size.rows == 7 ? 300 : 8);  // far apart, too
    std::vector<std::uint16_t> wanted(size.rows);
    for (std::uint16_t& one : wanted) one = static_cast<std::uint16_t>(prng.below(size.columns));
    if (size.rows > 8) x[0] = -std::numeric_limits<float>::infinity();
    if (size.rows > 8 && wanted[0] == 0) wanted[0] = 1;
    const float share = size.rows == 1 ? 0.0f : 0.25f / static_cast<float>(std::max(size.rows, 1u));
    std::vector<double> losses, gradient;
    for (std::size_t r = 0; r < size.rows; ++r) {
      const float* row = x.data() + r * size.columns;
      const double top = *std::max_element(row, row + size.columns);
      double sum = 0;
      for (std::uint32_t c = 0; c < size.columns; ++c) sum += std::exp(double{row[c]} - top);
      losses.push_back(std::log(sum) + top - double{row[wanted[r]]});
      for (std::uint32_t c = 0; c < size.columns; ++c)
        gradient.push_back(double{share} * (std::exp(double{row[c]} - top) / sum - (c == wanted[r] ? 1 : 0)));
    }
    const Guarded<float> on_x(target, x, skip), loss(target, size.rows, skip);
    const Guarded<std::uint16_t> on_wanted(target, wanted, skip);
    const Guarded<double> total(target, 1);
    const CrossEntropyArgs args{size.matrix(), on_x.data(), on_wanted.data(), share, loss.data(), total.data()};
    target.table().model.cross_entropy(target.device(), &args);
    BOOST_TEST(distance(loss.read(), losses) < 1e-5);
    BOOST_TEST(std::abs(total.read()[0] - std::accumulate(losses.begin(), losses.end(), 0.0)) <
               1e-5 * (1 + std::abs(total.read()[0])));
    const Floats got = on_x.read();
    if (share == 0)
      BOOST_TEST(same_bits(got, x));
    else
      BOOST_TEST(distance(got, gradient) < 1e-5);
    // Another order of blocks and threads, the same bits.
    const Target other(99);
    const Guarded<float> again(other, x, skip), loss_again(other, size.rows, skip);
    const Guarded<std::uint16_t> wanted_again(other, wanted, skip);
    const Guarded<double> total_again(other, 1);
    const CrossEntropyArgs args_again{size.matrix(), again.data(),      wanted_again.data(),
                                      share,         loss_again.data(), total_again.data()};
    other.table().model.cross_entropy(other.device(), &args_again);
    BOOST_TEST(same_bits(again.read(), got));
    BOOST_TEST((total_again.read() == total.read()));
  });
}

BOOST_AUTO_TEST_CASE(a_logit_that_is_no_number_shows_in_the_loss) {
  const Target target(2);
  Floats x(600, 0.5f);
  x[417] = std::numeric_limits<float>::quiet_NaN();
  const Guarded<float> on_x(target, x), loss(target, 2);
  const Guarded<std::uint16_t> wanted(target, std::vector<std::uint16_t>{7, 8});
  const Guarded<double> total(target, 1);
  const CrossEntropyArgs args{{2, 300}, on_x.data(), wanted.data(), 0.5f, loss.data(), total.data()};
  target.table().model.cross_entropy(target.device(), &args);
  BOOST_TEST(std::isfinite(loss.read()[0]));
  BOOST_TEST(std::isnan(loss.read()[1]));
  BOOST_TEST(std::isnan(total.read()[0]));
}

BOOST_AUTO_TEST_CASE(embedding_forward_and_back) {
  Prng prng(47);
  std::uint64_t order = 0;
  struct Shape {
    std::uint32_t batch, context, width, vocabulary;
  };
  for (const Shape s : {Shape{0, 4, 8, 9}, Shape{1, 1, 1, 1}, Shape{3, 5, 7, 4}, Shape{2, 70, 33, 300},
                        Shape{5, 40, 130, 3}, Shape{1, 9, 300, 40}, Shape{1, 9, 3, 60000}}) {
    const Target target(order++);
    const bool placed = order % 3 != 0;  // a Llama has no table of positions
    const std::uint32_t rows = s.batch * s.context;
    std::vector<models::Token> batch(std::size_t{s.batch} * (s.context + 1));
    std::vector<std::uint16_t> token;
    for (models::Token& one : batch) one = static_cast<models::Token>(prng.below(s.vocabulary));
    const models::TokenBatch tokens{batch.data(), s.batch, s.context};
    for (long r = 0; r < rows; ++r) token.push_back(tokens.token(r));
    const std::size_t wide = s.width;
    const Floats table = drawn(prng, s.vocabulary * wide), position = drawn(prng, s.context * wide);
    Floats y(rows * wide);
    models::embed(nullptr, tokens, s.width, table.data(), placed ? position.data() : nullptr, y.data());
    const Guarded<std::uint16_t> on_token(target, token, order % 3);
    const Guarded<float> on_table(target, table), on_position(target, position), on_y(target, rows * wide, order % 4);
    const EmbedArgs args{rows,
                         s.width,
                         s.context,
                         on_token.data(),
                         on_table.data(),
                         placed ? on_position.data() : nullptr,
                         on_y.data()};
    target.table().model.embed(target.device(), &args);
    BOOST_TEST(same_bits(on_y.read(), y));

    const Floats change = drawn(prng, rows * wide);
    Floats table_gradient = drawn(prng, table.size()), position_gradient(position.size());
    std::vector<std::uint32_t> row(rows), first;
    std::vector<std::uint16_t> distinct;
    std::iota(row.begin(), row.end(), 0u);
    std::stable_sort(row.begin(), row.end(), [&](std::uint32_t a, std::uint32_t b) { return token[a] < token[b]; });
    for (std::uint32_t at = 0; at < rows; ++at)
      if (at == 0 || token[row[at]] != token[row[at - 1]]) {
        first.push_back(at);
        distinct.push_back(token[row[at]]);
      }
    first.push_back(rows);
    if (order % 2 == 0) {  // one without rows, which is no token
      first.push_back(rows);
      distinct.push_back(0xffff);
    }
    const Guarded<float> on_change(target, change), on_table_gradient(target, table_gradient, order % 4),
        on_position_gradient(target, position.size());
    const Guarded<std::uint32_t> on_row(target, row), on_first(target, first);
    const Guarded<std::uint16_t> on_distinct(target, distinct);
    const EmbedChange back{rows,
                           s.width,
                           s.context,
                           on_change.data(),
                           on_row.data(),
                           on_first.data(),
                           on_distinct.data(),
                           static_cast<std::uint32_t>(distinct.size()),
                           on_table_gradient.data(),
                           placed ? on_position_gradient.data() : nullptr};
    target.table().model.embed_backward(target.device(), &back);
    models::embed_backward(nullptr, tokens, s.width, change.data(), table_gradient.data(),
                           placed ? position_gradient.data() : nullptr);
    BOOST_TEST(same_bits(on_table_gradient.read(), table_gradient));
    if (placed) BOOST_TEST(same_bits(on_position_gradient.read(), position_gradient));
  }
}

BOOST_AUTO_TEST_SUITE_END()
