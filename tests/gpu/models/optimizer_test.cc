// DeviceOptimizer and DeviceNewtonSchulz against models/optimizers: bits where steps are rules and in the moments of
// Muon, a tolerance in its directions; checkpoints from either to the other.
#include "gpu/optimizers/optimizer.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/optimizers/newton_schulz.h"
#include "tests/gpu/models/drawn_batch.h"
#include "tests/gpu/models/model_support.h"
#include "tests/unit/models/families/gpt_config.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_optimizer)

namespace {

constexpr double rate = 0.02;

// How far a direction may be from the exact one, in shares of the largest value.
double tolerance(Precision precision) {
  if (precision == Precision::fp32) return 1e-5;
  return precision == Precision::tf32 ? 3e-2 : 0.2;
}

// The CPU's direction may be farther from it: rounding moves the small eigenvalues of a Gram matrix.
constexpr double from_cpu = 1e-3;

constexpr MatrixLayout matrices[] = {{1, 1, 1},    {1, 7, 9},    {7, 1, 1},    {3, 3, 3},    {16, 40, 40},
                                     {40, 16, 48}, {65, 70, 70}, {130, 64, 64}, {64, 128, 384}};

// y += factor a b in double; a: [size.rows][depth], b: [depth][size.columns].
void multiply(Matrix size, std::uint32_t depth, double factor, const double* a, const double* b, double* y) {
  for (std::size_t r = 0; r < size.rows; ++r)
    for (std::size_t k = 0; k < depth; ++k)
      for (std::size_t c = 0; c < size.columns; ++c)
        y[r * size.columns + c] += factor * a[r * depth + k] * b[k * size.columns + c];
}

// The five steps as the paper has them, in double: x <- a x + (b A + c A A) x, A = x x^T.
std::vector<double> direction_of(const Floats& from, const MatrixLayout& size) {
  std::vector<double> x(from.begin(), from.end());
  double squares = 0;
  for (const double value : x) squares += value * value;
  for (double& value : x) value /= std::sqrt(squares);
  const Matrix whole{size.rows, size.columns}, gram{size.rows, size.rows};
  for (int step = 0; step < models::newton_steps; ++step) {
    std::vector<double> turned(x.size()), a(std::size_t{size.rows} * size.rows), once(x.size()), next(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) turned[i % size.columns * size.rows + i / size.columns] = x[i];
    multiply(gram, size.columns, 1, x.data(), turned.data(), a.data());
    multiply(whole, size.rows, 1, a.data(), x.data(), once.data());
    multiply(whole, size.rows, double{models::newton_c}, a.data(), once.data(), next.data());
    for (std::size_t i = 0; i < x.size(); ++i)
      next[i] += double{models::newton_a} * x[i] + double{models::newton_b} * once[i];
    x = next;
  }
  return x;
}

// All matrices have the same gaps behind them; what is there stays.
std::vector<Floats> found_directions(const Target& target, const std::vector<Floats>& x, const MatrixGroup& group,
                                     DeviceNewtonSchulz& newton_schulz) {
  const MatrixLayout& size = group.layout;
  Floats all(group.layout.extent(group.count, group.step), std::nanf(""));
  const auto each = [&](const auto& one) {
    for (std::uint32_t m = 0; m < group.count; ++m)
      for (std::size_t i = 0; i < group.numbers(); ++i)
        one(m, i, m * group.step + i / size.columns * size.stride + i % size.columns);
  };
  each([&](std::uint32_t m, std::size_t i, std::size_t at) { all[at] = x[m][i]; });
  const Guarded<float> y(target, all);
  BOOST_TEST_REQUIRE(newton_schulz.orthogonalise(group, y.data()).ok());
  const Floats got = y.read();
  std::vector<Floats> found(group.count, Floats(group.numbers()));
  Floats gaps = got;
  each([&](std::uint32_t m, std::size_t i, std::size_t at) {
    found[m][i] = got[at];
    gaps[at] = all[at];
  });
  BOOST_TEST(same_bits(gaps, all));
  return found;
}

Floats found_direction(const Target& target, const Floats& x, const MatrixLayout& size, Precision precision) {
  const MatrixGroup group{size, 1, 0};
  auto made = DeviceNewtonSchulz::create(*target.gpu, precision, {&group, 1});
  BOOST_TEST_REQUIRE(made.ok());
  return found_directions(target, {x}, group, *made)[0];
}

// The same steps with floats throughout, which each product rounds by itself.
Floats direction_by_floats(const Target& target, const Floats& x, const MatrixLayout& layout, Precision precision) {
  const MatrixGroup group{{layout.rows, layout.columns, layout.columns}, 1, 0};
  const bool tall = layout.rows > layout.columns;
  const std::uint32_t order = std::min(layout.rows, layout.columns);
  const Guarded<float> first(target, x), second(target, x.size()), gram(target, std::size_t{order} * order),
      square(target, std::size_t{order} * order);
  const Guarded<double> partial(target, square_partials(x.size())), total(target, 1);
  const OptimizerTable& table = target.table().optimizers;
  table.square_sums(target.device(), group, first.data(), partial.data(), total.data());
  table.scale_to_one(target.device(), group, models::newton_norm_min, total.data(), first.data(), second.data());
  Products products(*target.gpu, precision);
  const Guarded<float>*from = &second, *to = &first;
  for (int step = 0; step < models::newton_steps; ++step) {
    MatmulArgs args = product(order, order, std::max(layout.rows, layout.columns), from->data(), from->data(),
                              gram.data());
    (tall ? args.a_turned : args.b_turned) = true;
    products.make(args);
    products.make(product(order, order, order, gram.data(), gram.data(), square.data()));
    table.quadratic(target.device(), 1, order, {models::newton_a, models::newton_b, models::newton_c}, gram.data(),
                    square.data(), square.data());
    products.make(product(layout.rows, layout.columns, order, tall ? from->data() : square.data(),
                          tall ? square.data() : from->data(), to->data()));
    std::swap(from, to);
  }
  BOOST_TEST(products.outcome().ok());
  return from->read();
}

// A model with matrices of all kinds, or another one, and both kinds of optimizers of it.
struct Pair {
  std::unique_ptr<models::Model> model;
  std::uint32_t params = model->layout().params();
  models::OptimizerConfig config;
  std::unique_ptr<models::Optimizer> cpu, behind;  // behind: the one whose moments are on the GPU
  Target target;
  DeviceOptimizer gpu;
  DeviceArray<float> gradient, weights, change;
  Floats here;  // the change on the CPU

  explicit Pair(const char* kind, std::uint64_t order = 0,
                const models::ModelConfig& family = models::test::gpt_config(11, 6, 2, 2, 8))
      : model(models::make_model(family).value()),
        config{.kind = kind, .momentum = 0.8, .beta2 = 0.9, .weight_decay = 0.25, .adam_share = 0.5, .adam_beta1 = 0.7},
        cpu(make()),
        behind(make()),
        target(order),
        gpu(DeviceOptimizer::create(*target.gpu, *behind, Precision::fp32).value()),
        here(params) {
    for (DeviceArray<float>* array : {&gradient, &weights, &change}) *array = copied(target, here);
  }

  std::unique_ptr<models::Optimizer> make() const {
    return std::move(models::make_optimizer(config, params, models::hidden_matrices(*model))).value();
  }
  // Both take the step; returns the changes so far on the GPU.
  Floats step(Prng& prng) {
    const Floats g = drawn(prng, params), w = drawn(prng, params);
    Floats delta(params), there(params);
    cpu->step(g, rate, delta, w);
    for (std::size_t i = 0; i < here.size(); ++i) here[i] += delta[i];
    gradient.write(g.data(), params);
    weights.write(w.data(), params);
    BOOST_TEST_REQUIRE(gpu.add_step(gradient, rate, weights, change).ok());
    BOOST_TEST_REQUIRE(change.read(there.data(), params).ok());
    return there;
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(directions_are_those_of_the_paper) {
  Prng prng(141);
  std::uint64_t order = 0;
  for (const MatrixLayout& size : matrices)
    for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
      const Target target(order++ % 5);
      if (!has_products(target)) return;
      const Floats x = drawn(prng, std::size_t{size.rows} * size.columns, 3);
      const Floats found = found_direction(target, x, size, precision);
      if (!on_device()) BOOST_TEST(same_bits(found, direction_by_floats(target, x, size, precision)));
      const double off = distance(found, direction_of(x, size));
      BOOST_TEST(off < tolerance(precision), size.rows << " x " << size.columns << ": " << off);
    }
}

// Groups of all kinds share the memory of one object. A matrix of zeros, or of no numbers, does not disturb others.
BOOST_AUTO_TEST_CASE(directions_of_groups_are_those_of_each_matrix) {
  Prng prng(145);
  const MatrixGroup groups[] = {{{8, 8, 24}, 3, 8}, {{16, 40, 40}, 2, 700}, {{40, 16, 16}, 4, 640}, {{5, 3, 7}, 5, 36}};
  for (const Precision precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
    const Target target(static_cast<std::uint64_t>(precision) + 1);
    if (!has_products(target)) return;
    auto made = DeviceNewtonSchulz::create(*target.gpu, precision, groups);
    BOOST_TEST_REQUIRE(made.ok());
    for (const MatrixGroup& group : groups) {
      std::vector<Floats> x;
      for (std::uint32_t m = 0; m < group.count; ++m) x.push_back(drawn(prng, group.numbers(), 3));
      if (group.count > 3) {
        x[1].assign(x[1].size(), 0.0f);
        x[2].assign(x[2].size(), std::nanf(""));
      }
      const std::vector<Floats> found = found_directions(target, x, group, *made);
      for (std::uint32_t m = 0; m < group.count; ++m) {
        const Floats alone = found_direction(target, x[m], group.layout, precision);
        if (!on_device()) BOOST_TEST(same_bits(found[m], alone));
        if (group.count > 3 && (m == 1 || m == 2)) {
          BOOST_TEST(same_bits(found[m], Floats(alone.size(), m == 1 ? 0.0f : std::nanf(""))));
          continue;
        }
        BOOST_TEST(distance(found[m], direction_of(x[m], group.layout)) < tolerance(precision));
      }
    }
  }
}

// The offsets of a GPT give groups of one matrix a layer, whatever else lies between them.
BOOST_AUTO_TEST_CASE(matrices_of_one_layout_at_equal_distances_are_a_group) {
  std::vector<models::HiddenMatrix> hidden;
  for (std::uint32_t layer = 0; layer < 7; ++layer) {
    const std::uint32_t begin = 100 + 1000 * layer;
    for (std::uint32_t i = 0; i < 3; ++i) hidden.push_back({begin + i * 8, 8, 8, 24});
    hidden.push_back({begin + 200, 8, 8, 8});
    if (layer != 5) hidden.push_back({begin + 300, 8, 16, 16});
  }
  const auto shown = [&](Precision precision, std::size_t bytes_max) {
    std::string text;
    for (const auto& [offset, group] : groups_of(hidden, precision, bytes_max))
      text += std::to_string(offset) + ":" + std::to_string(group.count) + "*" + std::to_string(group.step) + "+" +
              std::to_string(group.layout.columns) + "/" + std::to_string(group.layout.stride) + " ";
    return text;
  };
  BOOST_TEST(shown(Precision::fp32, group_bytes_max) ==
             "100:7*1000+8/24 108:7*1000+8/24 116:7*1000+8/24 300:7*1000+8/8 400:5*1000+16/16 6400:1*0+16/16 ");
  // 8 x 8 takes 1024 bytes, 8 x 16 takes 1536; as bfloat16 896 and 1152.
  BOOST_TEST(shown(Precision::fp32, 3072) ==
             "100:2*1000+8/24 2100:2*1000+8/24 4100:3*1000+8/24 108:2*1000+8/24 2108:2*1000+8/24 4108:3*1000+8/24 "
             "116:2*1000+8/24 2116:2*1000+8/24 4116:3*1000+8/24 300:2*1000+8/8 2300:2*1000+8/8 4300:3*1000+8/8 "
             "400:1*1000+16/16 1400:2*1000+16/16 3400:2*1000+16/16 6400:1*0+16/16 ");
  BOOST_TEST(shown(Precision::bf16, 3584) ==
             "100:3*1000+8/24 3100:4*1000+8/24 108:3*1000+8/24 3108:4*1000+8/24 116:3*1000+8/24 3116:4*1000+8/24 "
             "300:3*1000+8/8 3300:4*1000+8/8 400:2*1000+16/16 2400:3*1000+16/16 6400:1*0+16/16 ");
  BOOST_TEST(groups_of(hidden, Precision::fp32, 1).size() == hidden.size());
  BOOST_TEST(groups_of({}, Precision::fp32).empty());
}

BOOST_AUTO_TEST_CASE(a_matrix_of_zeros_has_no_direction) {
  const Target target(1);
  if (!has_products(target)) return;
  const MatrixLayout size{5, 4, 4};
  for (const float value : {0.0f, 1e-32f})
    BOOST_TEST((found_direction(target, Floats(20, value), size, Precision::fp32) == Floats(20, 0.0f)));
  for (const float value : found_direction(target, Floats(20, std::nanf("")), size, Precision::fp32))
    BOOST_TEST(std::isnan(value));
}

BOOST_AUTO_TEST_CASE(steps_that_are_rules_have_the_bits_of_the_cpu) {
  Prng prng(142);
  std::uint64_t order = 0;
  for (const char* kind : {"sgd", "momentum", "rmsprop", "adam", "adamw", "nadamw"}) {
    Pair both(kind, order++);
    for (int step = 0; step < 3; ++step) {
      const Floats there = both.step(prng);
      BOOST_TEST(same_bits(there, both.here), kind);
    }
    BOOST_TEST((both.gpu.save() == both.cpu->save()));
  }
}

BOOST_AUTO_TEST_CASE(steps_of_muon_are_those_of_the_cpu) {
  Prng prng(143);
  for (const models::ModelConfig& family :
       {models::test::gpt_config(11, 6, 2, 2, 8), small_llama(11, 6, 2, 1, 8)}) {
    Pair both("muon", 3, family);
    if (!has_products(both.target)) return;
    for (std::uint64_t step = 1; step <= 4; ++step) {
      const Floats there = both.step(prng);
      BOOST_TEST(distance(there, both.here) < from_cpu);
      for (const TensorInfo& tensor : both.model->layout().tensors()) {
        const double off = distance(part_of(there, tensor), part_of(both.here, tensor));
        const bool hidden = both.model->hidden_matrices(tensor) > 0;
        BOOST_TEST(off <= (hidden ? from_cpu : 0.0), tensor.name << ": " << off);
      }
      BOOST_TEST(both.gpu.repeats() == step - 1);  // the first is not recorded
    }
    BOOST_TEST((both.gpu.save() == both.cpu->save()));
  }
}

// Each loads the state of the other, and both go on as the other would have.
BOOST_AUTO_TEST_CASE(a_checkpoint_goes_to_and_fro) {
  Prng prng(144);
  for (const char* kind : {"adamw", "muon"}) {
    Pair first(kind), second(kind, 2);
    if (!has_products(first.target)) return;
    first.step(prng);
    const Bytes of_gpu = first.gpu.save(), of_cpu = first.cpu->save();
    BOOST_TEST((of_gpu == of_cpu));
    BOOST_TEST_REQUIRE(second.gpu.load(of_cpu).ok());
    BOOST_TEST_REQUIRE(second.cpu->load(of_gpu).ok());
    const Floats there = second.step(prng);
    BOOST_TEST(distance(there, second.here) < from_cpu);
    BOOST_TEST((second.gpu.save() == second.cpu->save()));
    BOOST_TEST((second.gpu.save() != of_gpu));
    const Bytes kept = second.gpu.save();
    BOOST_TEST(!second.gpu.load({of_cpu.data(), of_cpu.size() - 4}).ok());
    BOOST_TEST((second.gpu.save() == kept));
  }
}

BOOST_AUTO_TEST_CASE(memory_is_counted_and_may_be_too_little) {
  Pair both("muon");
  std::size_t others = both.params;
  for (const models::HiddenMatrix& matrix : both.cpu->matrices()) others -= std::size_t{matrix.rows} * matrix.cols;
  // Groups of three matrices of 8 x 8, and of two of 8 x 8 and 8 x 32. Two arrays of the most numbers, two of the most
  // Gram matrices, three sums of squares and their totals.
  const std::size_t moments = sizeof(float) * (both.params + others), scratch = sizeof(float) * 2 * (512 + 192) + 48;
  BOOST_TEST(both.gpu.memory_bytes() == moments + scratch);
  const auto rounds = DeviceOptimizer::create(*both.target.gpu, *both.behind, Precision::bf16);
  // Numbers take 2 bytes there, and rounded Gram matrices are kept besides, in a whole number of lines of 256 bytes.
  BOOST_TEST(rounds.value().memory_bytes() == moments + 2 * 2 * 512 + 2 * 4 * 192 + 512 + 48);
  if (on_device()) return;  // its memory cannot be held back
  set_emulated_memory(1);
  const auto full = DeviceOptimizer::create(*both.target.gpu, *both.behind, Precision::fp32);
  set_emulated_memory(0);
  BOOST_TEST_REQUIRE(!full.ok());
  BOOST_TEST((full.error().code == Errc::limit));
}

BOOST_AUTO_TEST_SUITE_END()
