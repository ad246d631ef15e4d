// The property everything rests on: the same set of updates, in any order, with duplicates, gives the same
// bits. On floats it does not.
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "tests/unit/runtime/support.h"

using namespace rumor;

namespace {

struct Named {
  gossip::UpdateHeader header;
  compress::SparseUpdate update;
};

constexpr std::uint32_t order_params = 5000;

std::vector<Named> thousands_of_updates(Prng& prng) {
  std::vector<Named> updates;
  for (std::uint8_t s = 1; s <= 8; ++s)
    for (std::uint64_t seq = 1; seq <= 500; ++seq) {
      Named named;
      named.update = test::random_update(prng, order_params, static_cast<std::size_t>(prng.below(60)),
                                         INT32_MAX);  // wraps around
      named.header = test::header_for(named.update, test::stream(s), seq);
      updates.push_back(std::move(named));
    }
  return updates;
}

LargeVector<std::int32_t> initial() {
  LargeVector<std::int32_t> weights(order_params);
  Prng prng(5);
  for (auto& w : weights) w = static_cast<std::int32_t>(prng.between(-(1 << 22), 1 << 22));
  return weights;
}

// In a random order, a third of them twice; returns how many were duplicates.
std::size_t apply_shuffled(Replica& replica, const std::vector<Named>& updates, Prng& prng) {
  std::vector<const Named*> order;
  std::size_t twice = 0;
  for (const Named& named : updates) {
    order.push_back(&named);
    if (!prng.chance(1, 3)) continue;
    order.push_back(&named);
    ++twice;
  }
  prng.shuffle(std::span<const Named*>(order));
  std::size_t duplicates = 0;
  for (const Named* named : order) {
    const auto accepted = replica.apply(named->header, named->update);
    BOOST_REQUIRE(accepted.ok());
    duplicates += *accepted == gossip::Accepted::duplicate ? 1 : 0;
  }
  BOOST_TEST(duplicates == twice);
  return duplicates;
}

std::vector<float> apply_to_floats(const std::vector<Named>& updates, Prng& prng) {
  std::vector<const Named*> order;
  for (const Named& named : updates) order.push_back(&named);
  prng.shuffle(std::span<const Named*>(order));
  std::vector<float> weights(order_params, 0.1f);
  for (const Named* named : order)
    for (std::size_t e = 0; e < named->update.index.size(); ++e) {
      const float amount = std::ldexp(static_cast<float>(named->update.step), -30);
      weights[named->update.index[e]] += named->update.negative[e] ? -amount : amount;
    }
  return weights;
}

}  // namespace

BOOST_AUTO_TEST_CASE(any_order_with_duplicates_gives_equal_bits) {
  Prng prng(1);
  const std::vector<Named> updates = thousands_of_updates(prng);
  Replica first(test::some_run(), test::flat_layout(order_params), initial());
  apply_shuffled(first, updates, prng);
  BOOST_TEST(first.verify());
  BOOST_TEST(first.have().count() == updates.size());
  for (int round = 0; round < 5; ++round) {
    Replica other(test::some_run(), test::flat_layout(order_params), initial());
    BOOST_TEST(apply_shuffled(other, updates, prng) > 0u);
    BOOST_TEST(std::equal(first.weights().begin(), first.weights().end(), other.weights().begin()));
    BOOST_TEST((first.digest() == other.digest()));
    BOOST_TEST(other.samples() == updates.size() * 16);
  }
}

BOOST_AUTO_TEST_CASE(floats_depend_on_the_order) {
  Prng prng(2);
  const std::vector<Named> updates = thousands_of_updates(prng);
  const auto one = apply_to_floats(updates, prng);
  const auto other = apply_to_floats(updates, prng);
  BOOST_TEST(!std::equal(one.begin(), one.end(), other.begin()));
}
