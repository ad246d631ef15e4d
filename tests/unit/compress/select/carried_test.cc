// A compressor that takes over the residual of another, and what its groups carry, goes on with the same bits.
#include <boost/test/unit_test.hpp>

#include "compress/select/compressor.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(carried)

namespace {

std::vector<float> some_change(Prng& prng, std::uint32_t params) {
  std::vector<float> delta(params);
  for (float& value : delta) value = static_cast<float>(prng.between(-9999, 9999)) * 1e-7f;
  return delta;
}

}  // namespace

BOOST_AUTO_TEST_CASE(another_goes_on_with_the_same_bits) {
  const ParamLayout layout = layout_of({9000, 70, 3});
  for (const Scope scope : {Scope::global, Scope::tensor}) {
    Prng prng(11);
    Compressor one(layout, {.density = 0.01, .scope = scope});
    std::uint64_t unlike_without = 0;
    for (int round = 0; round < 40; ++round) {
      Compressor other(layout, {.density = 0.01, .scope = scope}), forgetful(layout, {.density = 0.01, .scope = scope});
      for (Compressor* next : {&other, &forgetful}) next->restore_residual(one.residual());
      BOOST_TEST_REQUIRE(other.restore_carried(one.carried()));
      const std::vector<float> delta = some_change(prng, layout.params());
      SparseUpdate first, second, third;
      BOOST_TEST_REQUIRE(one.absorb(delta, first).ok());
      BOOST_TEST_REQUIRE(other.absorb(delta, second).ok());
      BOOST_TEST_REQUIRE(forgetful.absorb(delta, third).ok());
      BOOST_TEST_REQUIRE((first == second));
      unlike_without += first == third ? 0 : 1;
      if (round % 4 == 1) one.leave_out(std::vector<std::uint32_t>{first.index.front()}, first);
    }
    BOOST_TEST(unlike_without > 0u);
  }
}

BOOST_AUTO_TEST_CASE(impossible_ones_are_refused) {
  const ParamLayout layout = layout_of({100, 20});
  Compressor one(layout, {.density = 0.1, .scope = Scope::tensor});
  using Carried = Compressor::Carried;
  BOOST_TEST(one.restore_carried(one.carried()));
  BOOST_TEST(!one.restore_carried(std::vector<Carried>(1)));
  BOOST_TEST(!one.restore_carried(std::vector<Carried>(3)));
  BOOST_TEST(one.restore_carried(std::vector<Carried>{{60, 100}, {-60, 20}}));
  BOOST_TEST(!one.restore_carried(std::vector<Carried>{{0, 101}, {}}));
  BOOST_TEST(!one.restore_carried(std::vector<Carried>{{INT64_MAX, 0}, {}}));
  BOOST_TEST(!one.restore_carried(std::vector<Carried>{{}, {INT64_MIN, 0}}));
}

BOOST_AUTO_TEST_SUITE_END()
