// DeviceOptimizer and DeviceNewtonSchulz against models/optimizers: bits where steps are rules and in the moments of
// Muon, a tolerance in its directions; checkpoints from either to the other.
#include "gpu/optimizers/optimizer.h"

#include <boost/test/unit_test.hpp>
#include <cmath>

#include "models/optimizers/newton_schulz.h"
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

Floats found_direction(const Target& target, const Floats& x, const MatrixLayout& size, Precision precision) {
  const Matrix room{size.rows, size.columns};
  auto made = DeviceNewtonSchulz::create(*target.gpu, precision, {&room, 1});
  BOOST_TEST_REQUIRE(made.ok());
  const Guarded<float> y(target, with_gaps(Floats(x.size()), size));
  target.table().copy_in(target.device(), made->x(), x.data(), x.size() * sizeof(float));
  BOOST_TEST_REQUIRE(made->orthogonalise(size, y.data()).ok());
  return without_gaps(y.read(), size);
}

// A model with matrices of all kinds, and both kinds of optimizers of it.
struct Pair {
  std::unique_ptr<models::Model> model = models::make_model(models::test::gpt_config(11, 6, 2, 2, 8)).value();
  std::uint32_t params = model->layout().params();
  models::OptimizerConfig config;
  std::unique_ptr<models::Optimizer> cpu, behind;  // behind: the one whose moments are on the GPU
  Target target;
  DeviceOptimizer gpu;
  DeviceArray<float> gradient, weights, change;
  Floats here;  // the change on the CPU

  explicit Pair(const char* kind, std::uint64_t order = 0)
      : config{.kind = kind, .momentum = 0.8, .beta2 = 0.9, .weight_decay = 0.25, .adam_share = 0.5, .adam_beta1 = 0.7},
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
      const double off = distance(found_direction(target, x, size, precision), direction_of(x, size));
      BOOST_TEST(off < tolerance(precision), size.rows << " x " << size.columns << ": " << off);
    }
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
  Pair both("muon", 3);
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
  // Two arrays of the largest matrix, 8 x 32, two of its Gram matrix, a sum of squares and their total.
  const std::size_t moments = sizeof(float) * (both.params + others), scratch = sizeof(float) * 2 * (256 + 64) + 16;
  BOOST_TEST(both.gpu.memory_bytes() == moments + scratch);
  if (on_device()) return;  // its memory cannot be held back
  set_emulated_memory(1);
  const auto full = DeviceOptimizer::create(*both.target.gpu, *both.behind, Precision::fp32);
  set_emulated_memory(0);
  BOOST_TEST_REQUIRE(!full.ok());
  BOOST_TEST((full.error().code == Errc::limit));
}

BOOST_AUTO_TEST_SUITE_END()
