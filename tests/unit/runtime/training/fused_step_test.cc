// An optimizer's step inside the pass of the compressor is that step followed by the pass, bit for bit.
#include <bit>
#include <boost/test/unit_test.hpp>

#include "compress/select/compressor.h"
#include "compress/select/scan_kernels.h"
#include "models/optimizers/optimizer.h"
#include "runtime/base/prng.h"

using namespace rumor;

namespace {

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_fused_step_is_the_step_and_then_the_pass) {
  const ParamLayout layout = ParamLayout::create({{"a", {70, 101}}, {"b", {13}}}).value();
  for (const char* kind : {"sgd", "momentum", "rmsprop", "adam", "adamw", "nadamw", "adaptive_revision"}) {
    for (const compress::ScanKernels* set :
         {&compress::scan_kernels_portable, compress::scan_kernels_avx2(), compress::scan_kernels_avx512()}) {
      if (set == nullptr) continue;
      BOOST_TEST_CONTEXT(kind << " " << set->name) {
        const models::OptimizerConfig config{.kind = kind};
        auto apart = models::make_optimizer(config, layout.params()).value();
        auto inside = models::make_optimizer(config, layout.params()).value();
        compress::Compressor first(layout, {.density = 0.01}), second(layout, {.density = 0.01, .kernels = set});
        compress::SparseUpdate expected, out;
        Prng prng(51);
        std::vector<float> gradient(layout.params()), delta(layout.params()), weights(layout.params());
        for (int round = 0; round < 30; ++round) {
          for (float& value : gradient)
            value = prng.chance(1, 5) ? 0.0f : static_cast<float>(prng.between(-1'000'000, 1'000'000)) * 1e-7f;
          for (float& value : weights) value = static_cast<float>(prng.between(-1'000, 1'000)) * 1e-3f;
          const double rate = 0.1 / (1 + round);
          apart->step(gradient, rate, delta, weights);
          BOOST_REQUIRE(first.absorb(delta, expected).ok());
          BOOST_REQUIRE(second.absorb_step(inside->begin_step(rate, weights), gradient, out).ok());
          BOOST_REQUIRE((out == expected));
        }
        BOOST_TEST(same_bits(first.residual(), second.residual()));
        BOOST_TEST((apart->save() == inside->save()));
      }
    }
  }
}
