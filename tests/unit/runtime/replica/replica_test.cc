#include <boost/test/unit_test.hpp>

#include "gossip/trust/signing.h"
#include "tests/shortened.h"
#include "tests/unit/runtime/support.h"
#include "tests/unit/threads.h"

using namespace rumor;

BOOST_AUTO_TEST_CASE(apply_moves_weights_and_keeps_the_fingerprint) {
  Replica replica(test::some_run(), test::flat_layout(4), {10, 20, 30, 40});
  const compress::SparseUpdate update{5, {1, 3}, {0, 1}};
  const auto accepted = replica.apply(test::header_for(update, test::stream(1), 1), update);
  BOOST_REQUIRE(accepted.ok());
  BOOST_TEST((*accepted == gossip::Accepted::applied));
  const std::vector<std::int32_t> want = {10, 25, 30, 35};
  BOOST_TEST(std::equal(want.begin(), want.end(), replica.weights().begin()));
  BOOST_TEST(replica.verify());
  BOOST_TEST(replica.samples() == 16u);
}

BOOST_AUTO_TEST_CASE(an_own_update_gets_the_fingerprint_that_others_check) {
  Replica own(test::some_run(), test::flat_layout(4), {10, 20, 30, 40});
  Replica other(test::some_run(), test::flat_layout(4), {10, 20, 30, 40});
  const compress::SparseUpdate update{5, {1, 3}, {0, 1}};
  auto header = test::header_for(update, test::stream(1), 1);
  header.fingerprint = 0;
  const auto taken = own.apply_own(header, update);
  BOOST_TEST(taken->index == update.index);
  BOOST_REQUIRE(other.apply(header, update).ok());
  BOOST_TEST((own.digest() == other.digest()));
  BOOST_TEST(own.verify());
}

// Seven eighths of the range, whatever the order of the updates; also in a state that is taken over.
BOOST_AUTO_TEST_CASE(a_weight_near_the_end_of_the_grid_is_noticed) {
  for (const std::int32_t sign : {1, -1})
    for (const bool ahead : {false, true}) {
      Replica replica(test::some_run(), test::flat_layout(4), {10, 20, sign * 0x6000'0000, 40});
      const compress::SparseUpdate near{0x0fff'ffff, {1, 2}, {0, sign < 0}}, beyond{2, {2}, {sign < 0}};
      BOOST_REQUIRE(replica.apply(test::header_for(near, test::stream(1), 1), near).ok());
      BOOST_TEST(replica.weights()[2] == sign * 0x6fff'ffff);
      BOOST_TEST(!replica.near_range_end());
      BOOST_REQUIRE(replica.apply(test::header_for(beyond, test::stream(1), 2), beyond).ok());
      if (ahead)
        while (!replica.apply_some(1)) {
        }
      BOOST_TEST(replica.weights()[2] == sign * 0x7000'0001);
      BOOST_TEST(replica.near_range_end().value_or(0) == 2u);
      Replica other(test::some_run(), test::flat_layout(4), {10, 20, 30, 40});
      BOOST_REQUIRE(other.restore(replica.state()).ok());
      BOOST_TEST(other.near_range_end().value_or(0) == 2u);
    }
}

BOOST_AUTO_TEST_CASE(a_false_fingerprint_changes_nothing) {
  Replica replica(test::some_run(), test::flat_layout(4), {10, 20, 30, 40});
  const compress::SparseUpdate update{5, {1, 3}, {0, 1}};
  auto header = test::header_for(update, test::stream(1), 1);
  header.fingerprint ^= 1;
  const auto before = replica.digest();
  const auto refused = replica.apply(header, update);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == Errc::corrupt));
  BOOST_TEST((replica.digest() == before));
  BOOST_TEST(replica.weights()[1] == 20);
}

BOOST_AUTO_TEST_CASE(digests_tell_have_sets_and_weights_apart) {
  Prng prng(3);
  const auto update = test::random_update(prng, 100, 10);
  Replica a(test::some_run(), test::flat_layout(100), LargeVector<std::int32_t>(100, 0)),
      b(test::some_run(), test::flat_layout(100), LargeVector<std::int32_t>(100, 0));
  BOOST_TEST((a.digest() == b.digest()));
  BOOST_REQUIRE(a.apply(test::header_for(update, test::stream(1), 1), update).ok());
  BOOST_REQUIRE(b.apply(test::header_for(update, test::stream(2), 1), update).ok());
  BOOST_TEST(a.digest().fingerprint == b.digest().fingerprint);  // the same change
  BOOST_TEST((a.digest().have_hash != b.digest().have_hash));    // under another name
}

BOOST_AUTO_TEST_CASE(restore_refuses_weights_without_their_fingerprint) {
  Replica replica(test::some_run(), test::flat_layout(3), {1, 2, 3});
  ReplicaState state = replica.state();
  state.weights[0] ^= 1 << 7;
  const auto refused = replica.restore(state);
  BOOST_REQUIRE(!refused.ok());
  BOOST_TEST((refused.error().code == Errc::corrupt));
  BOOST_TEST(replica.weights()[0] == 1);
  state.weights.pop_back();
  BOOST_TEST((replica.restore(state).error().code == Errc::mismatch));
}

BOOST_AUTO_TEST_CASE(the_fingerprint_is_linear_through_wrap_around) {
  const Fingerprinter f(test::some_run());
  std::vector<std::int32_t> weights = {INT32_MAX, INT32_MIN, 0, -1};
  const std::uint64_t before = f.of_weights(weights);
  const compress::SparseUpdate update{INT32_MAX, {0, 1}, {0, 1}};
  weights[0] = static_cast<std::int32_t>(static_cast<std::uint32_t>(weights[0]) +
                                         static_cast<std::uint32_t>(INT32_MAX));
  weights[1] = static_cast<std::int32_t>(static_cast<std::uint32_t>(weights[1]) -
                                         static_cast<std::uint32_t>(INT32_MAX));
  BOOST_TEST(f.of_weights(weights) == Fingerprinter::add(before, f.of_update(test::flat_layout(4), update)));
}

BOOST_AUTO_TEST_CASE(the_fingerprint_is_what_its_definition_says_with_all_kernels) {
  Prng prng(5);
  for (const FingerprintKernels* set :
       {&fingerprint_kernels_portable, fingerprint_kernels_avx2(), fingerprint_kernels_avx512()}) {
    if (set == nullptr) continue;
    for (const std::size_t count : {0u, 1u, 3u, 7u, 8u, 9u, 16u, 31u, 64u, 1000u}) {
      const std::uint64_t seed = prng.next();
      const auto first = static_cast<std::uint32_t>(prng.next());
      std::vector<std::int32_t> weights(count);
      std::vector<std::uint32_t> index(count);
      std::vector<std::uint8_t> negative(count);
      LaneSums of_weights{0, 0}, of_entries{0, 0};
      for (std::size_t i = 0; i < count; ++i) {
        weights[i] = static_cast<std::int32_t>(prng.next());
        index[i] = static_cast<std::uint32_t>(prng.next());
        negative[i] = prng.next() & 1;
        const auto w = static_cast<std::uint32_t>(weights[i]), sign = negative[i] != 0 ? ~0u : 1u;
        const std::uint64_t r = mix64(seed + first + i), s = mix64(seed + index[i]);
        of_weights.low += w * (static_cast<std::uint32_t>(r) | 1);
        of_weights.high += w * (static_cast<std::uint32_t>(r >> 32) | 1);
        of_entries.low += sign * (static_cast<std::uint32_t>(s) | 1);
        of_entries.high += sign * (static_cast<std::uint32_t>(s >> 32) | 1);
      }
      const LaneSums a = set->weights(seed, first, weights.data(), count);
      const LaneSums b = set->entries(seed, index.data(), negative.data(), count);
      BOOST_TEST((a.low == of_weights.low && a.high == of_weights.high), set->name << ' ' << count);
      BOOST_TEST((b.low == of_entries.low && b.high == of_entries.high), set->name << ' ' << count);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_tensor_moves_by_its_own_step) {
  const ParamLayout layout = ParamLayout::create({{"a", {3}}, {"b", {2}}, {"c", {1}}}).value();
  const compress::SparseUpdate update{0, {0, 2, 5}, {0, 1, 0}, {7, 0, 100}};
  const Fingerprinter fingerprinter(test::some_run());
  Replica replica(test::some_run(), layout, {10, 20, 30, 40, 50, 60});
  gossip::UpdateHeader header;
  header.key = {test::stream(1), 1};
  header.fingerprint = fingerprinter.of_update(layout, update);
  BOOST_REQUIRE(replica.apply(header, update).ok());
  const std::vector<std::int32_t> want = {17, 20, 23, 40, 50, 160};
  BOOST_TEST(std::equal(want.begin(), want.end(), replica.weights().begin()));
  BOOST_TEST(replica.verify());
}

namespace {

// Updates wait until weights or view are asked for; whatever the order of questions, the answers are right.
void follow(std::uint32_t params, std::size_t entries_max, std::uint64_t updates, Parallel& parallel) {
  Prng prng(8);
  const ParamLayout layout = test::flat_layout(params);
  Replica replica(test::some_run(), layout, LargeVector<std::int32_t>(params, 5));
  std::vector<std::int32_t> want(params, 5);
  std::vector<float> values(params, 0.0f);
  int followed = 0, pieces = 0;
  for (std::uint64_t seq = 1; seq <= updates; ++seq) {
    const auto update = test::random_update(prng, params, static_cast<std::size_t>(prng.below(entries_max)), 100);
    for (std::size_t e = 0; e < update.index.size(); ++e)
      want[update.index[e]] += update.negative[e] ? -update.step : update.step;
    BOOST_REQUIRE(replica.apply(test::header_for(update, test::stream(1), seq), update).ok());
    if (prng.chance(1, 5))
      BOOST_TEST_REQUIRE(std::equal(want.begin(), want.end(), replica.weights().begin()));
    if (prng.chance(1, 3)) pieces += !replica.apply_some(1 + prng.below(entries_max));
    if (!prng.chance(1, 4)) continue;
    if (replica.refresh({values, 0.5f}, parallel))
      ++followed;
    else
      for (std::uint32_t i = 0; i < params; ++i) values[i] = static_cast<float>(replica.weights()[i]) * 0.5f;
    bool same = true;
    for (std::uint32_t i = 0; i < params; ++i) same = same && values[i] == static_cast<float>(want[i]) * 0.5f;
    BOOST_TEST_REQUIRE(same);
  }
  BOOST_TEST(followed > static_cast<int>(updates / 15));
  BOOST_TEST(pieces > static_cast<int>(updates / 12));
  BOOST_TEST(replica.verify());
  BOOST_TEST(replica.state().have.count() == updates);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_view_follows_the_weights) {
  Serial alone;
  follow(400, 60, 300, alone);
}

BOOST_AUTO_TEST_CASE(the_view_follows_the_weights_on_many_threads) {
  test::Threads threads(3);
  follow(300'000, 100'000, static_cast<int>(rumor::test::shortened(60)), threads);
}

// A holder of the weights elsewhere receives each change once, in order, whenever the weights here take it. It also
// learns when it must read all of them.
BOOST_AUTO_TEST_CASE(what_was_taken_is_handed_over_while_the_weights_wait) {
  constexpr std::uint32_t params = 300;
  const ParamLayout layout = test::flat_layout(params);
  Prng prng(21);
  Replica replica(test::some_run(), layout, LargeVector<std::int32_t>(params, INT32_MAX - 5));
  LargeVector<std::int32_t> elsewhere(params);
  std::vector<compress::SparseUpdate> updates;
  std::vector<std::shared_ptr<const Bytes>> payloads;
  int handed = 0, anew = 0, waited = 0, back = 0;
  BOOST_TEST(!replica.refreshed());
  for (std::uint64_t seq = 1; seq <= 400; ++seq) {
    updates.push_back(test::random_update(prng, params, static_cast<std::size_t>(prng.below(60))));
    payloads.push_back(std::make_shared<const Bytes>(compress::encode(layout, updates.back())));
    const gossip::UpdateHeader header = test::header_for(updates.back(), test::stream(1), seq);
    BOOST_REQUIRE(replica.apply(header, updates.back(), payloads.back()).ok());
    if (prng.chance(1, 6)) {
      replica.take_back(header, updates.back(), payloads.back());
      ++back;
    }
    if (prng.chance(1, 5)) replica.apply_some(1 + prng.below(60));
    if (prng.chance(1, 20)) BOOST_TEST(replica.verify());
    if (prng.chance(1, 30)) BOOST_REQUIRE(replica.restore(ReplicaState(replica.state())).ok());
    if (!prng.chance(1, 4)) continue;
    const bool applied = replica.nothing_pending();
    const auto changes = replica.hand_over();
    BOOST_TEST(replica.nothing_pending() == applied);
    BOOST_TEST((replica.refreshed() && replica.recent_entries() == 0));
    waited += !applied;
    if (!changes) {
      elsewhere = replica.state().weights;
      ++anew;
      continue;
    }
    for (const Taken& taken : *changes) {
      compress::SparseUpdate said = compress::decode(layout, *taken.payload).value();
      for (std::uint8_t& negative : said.negative) negative ^= taken.back ? 1 : 0;
      BOOST_TEST_REQUIRE((said == *taken.update));
      const compress::SparseUpdate* one[] = {taken.update.get()};
      compress::apply(layout, one, elsewhere);
      ++handed;
    }
    BOOST_TEST_REQUIRE((replica.fingerprinter().of_weights(elsewhere) == replica.fingerprint()));
  }
  BOOST_TEST((handed > 100 && anew > 10 && waited > 50 && back > 30));
  BOOST_TEST(replica.verify());
}

// Whatever was applied in between, and in whatever order it is taken back: the bits are those of a replica
// that never had it.
BOOST_AUTO_TEST_CASE(what_is_taken_back_was_never_there) {
  constexpr std::uint32_t params = 300;
  const LargeVector<std::int32_t> initial(params, INT32_MAX - 5);  // sums wrap around
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Prng prng(seed);
    std::vector<compress::SparseUpdate> updates;
    std::vector<std::uint64_t> order, back;
    for (std::uint64_t seq = 1; seq <= 30; ++seq) {
      updates.push_back(test::random_update(prng, params, 40));
      order.push_back(seq);
      if (seq % 3 == 0) back.push_back(seq);
    }
    Replica without(test::some_run(), test::flat_layout(params), initial);
    for (const std::uint64_t seq : order) {
      if (seq % 3 == 0) continue;
      const auto& update = updates[seq - 1];
      BOOST_REQUIRE(without.apply(test::header_for(update, test::stream(1), seq), update).ok());
    }
    Replica replica(test::some_run(), test::flat_layout(params), initial);
    prng.shuffle(std::span(order));
    prng.shuffle(std::span(back));
    for (const std::uint64_t seq : order) {
      const auto& update = updates[seq - 1];
      BOOST_REQUIRE(replica.apply(test::header_for(update, test::stream(1), seq), update).ok());
      if (seq % 7 == 0) BOOST_TEST(replica.verify());  // some lie on the weights already, some wait
    }
    for (const std::uint64_t seq : back)
      replica.take_back(test::header_for(updates[seq - 1], test::stream(1), seq), updates[seq - 1]);
    BOOST_TEST(replica.verify());
    BOOST_TEST((replica.digest() == without.digest()));
    BOOST_TEST(std::equal(replica.weights().begin(), replica.weights().end(), without.weights().begin()));
    BOOST_TEST(replica.samples() == without.samples());
  }
}

// Two replicas with the same updates and other revocations are not equal: one of them will refuse what comes.
BOOST_AUTO_TEST_CASE(revocations_are_part_of_the_digest) {
  Replica replica(test::some_run(), test::flat_layout(4), {1, 2, 3, 4});
  const auto before = replica.digest();
  gossip::Revocation revocation{test::node(5), test::stream(1), {3, 7}, {}};
  BOOST_TEST(!replica.is_revoked({test::stream(1), 3}));
  replica.mark(revocation);
  BOOST_TEST((replica.digest().have_hash != before.have_hash));
  BOOST_TEST(replica.digest().fingerprint == before.fingerprint);
  BOOST_TEST(replica.is_revoked({test::stream(1), 3}));
  BOOST_TEST(replica.is_revoked({test::stream(1), 7}));
  BOOST_TEST(!replica.is_revoked({test::stream(1), 8}));
  BOOST_TEST(!replica.is_revoked({test::stream(2), 3}));
  const gossip::Revocation all{test::node(5), {}, {1, gossip::seq_max}, {}};
  BOOST_TEST(all.covers({gossip::stream_of(test::node(5), 12), 99}));
  BOOST_TEST(!all.covers({gossip::stream_of(test::node(6), 12), 99}));
}
