// Applying: merged or one by one, with or without view, the result is that of plain additions.
#include "compress/payload/apply.h"

#include <boost/test/unit_test.hpp>
#include <limits>

#include "tests/shortened.h"
#include "tests/unit/compress/generated.h"

using namespace rumor;
using namespace rumor::compress;

BOOST_AUTO_TEST_SUITE(apply_updates)

namespace {

std::vector<std::int32_t> some_weights(Prng& prng, std::uint32_t params) {
  std::vector<std::int32_t> weights(params);
  for (std::int32_t& weight : weights) weight = static_cast<std::int32_t>(prng.next());
  return weights;
}

// Entry by entry, as the words of SparseUpdate say.
void plainly(const ParamLayout& layout, const SparseUpdate& update, std::vector<std::int32_t>& weights) {
  std::size_t t = 0;
  for (std::size_t e = 0; e < update.index.size(); ++e) {
    while (update.index[e] >= layout.tensors()[t].offset + layout.tensors()[t].size) ++t;
    const std::int32_t step = update.tensor_step.empty() ? update.step : update.tensor_step[t];
    const auto before = static_cast<std::uint32_t>(weights[update.index[e]]);
    weights[update.index[e]] =
        static_cast<std::int32_t>(update.negative[e] ? before - static_cast<std::uint32_t>(step)
                                                     : before + static_cast<std::uint32_t>(step));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(merged_is_the_sum_of_all) {
  Prng prng(61);
  for (std::uint64_t round = 0; round < rumor::test::shortened(150); ++round) {
    const ParamLayout layout = round % 10 == 0 ? large_layout(prng) : random_layout(prng, 6, 3000);
    std::vector<SparseUpdate> updates(prng.below(12));
    for (SparseUpdate& update : updates) {
      update = any_update(prng, layout);
      if (prng.chance(1, 2)) give_own_steps(prng, layout, update);
    }
    std::vector<const SparseUpdate*> all;
    for (const SparseUpdate& update : updates) all.push_back(&update);
    const std::vector<std::int32_t> initial = some_weights(prng, layout.params());
    std::vector<std::int32_t> plain = initial, merged = initial, viewed = initial;
    for (const SparseUpdate& update : updates) plainly(layout, update, plain);
    apply(layout, all, merged);
    BOOST_TEST_REQUIRE((merged == plain));

    std::vector<float> values(layout.params(), -1.0f);
    apply(layout, all, viewed, {values, 0.5f});
    BOOST_TEST_REQUIRE((viewed == plain));
    std::vector<bool> touched(layout.params(), false);
    for (const SparseUpdate& update : updates)
      for (const std::uint32_t position : update.index) touched[position] = true;
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < layout.params(); ++i)
      wrong += values[i] == (touched[i] ? static_cast<float>(plain[i]) * 0.5f : -1.0f) ? 0 : 1;
    BOOST_TEST_REQUIRE(wrong == 0u);
  }
}

BOOST_AUTO_TEST_CASE(every_entry_is_fetched_before_it_is_visited_and_visited_once) {
  Prng prng(62);
  const ParamLayout layout = layout_of({200'000, 7, 90'000});
  std::vector<SparseUpdate> updates;
  std::vector<const SparseUpdate*> all;
  for (int u = 0; u < 5; ++u) updates.push_back(random_update(prng, layout.params(), 9000, 1 + u));
  for (const SparseUpdate& update : updates) all.push_back(&update);
  std::vector<int> fetched(layout.params(), 0), visited(layout.params(), 0);
  const auto walk = [&](std::span<const SparseUpdate* const> some, Stretch where) {
    std::size_t entries = 0;
    walk_merged(
        layout, some, where, [&](std::uint32_t i) { ++fetched[i]; },
        [&](const EntryRun& run) {
          bool fetched_before = true, inside = true;
          for (std::size_t e = 0; e < run.count; ++e) {
            const std::uint32_t i = run.index[e];
            fetched_before = fetched_before && ++visited[i] <= fetched[i];
            inside = inside && where.begin <= i && i < where.end;
          }
          BOOST_TEST_REQUIRE(fetched_before);
          BOOST_TEST_REQUIRE(inside);
          entries += run.count;
        });
    BOOST_TEST((fetched == visited));
    return entries;
  };
  BOOST_TEST(walk(all, all_of(layout)) == 45'000u);
  for (const std::span<const SparseUpdate* const> some : {std::span<const SparseUpdate* const>(all), {all.data(), 1}}) {
    std::size_t entries = 0;
    for (const Stretch where : {Stretch{0, 0}, Stretch{0, 1}, Stretch{1, 131'073}, Stretch{131'073, 200'003},
                                Stretch{200'003, 200'003}, Stretch{200'003, layout.params()}})
      entries += walk(some, where);
    BOOST_TEST(entries == 9000 * some.size());
  }
}

BOOST_AUTO_TEST_CASE(steps_wrap_around) {
  const ParamLayout layout = layout_of({2});
  const SparseUpdate update{std::numeric_limits<std::int32_t>::max(), {0, 1}, {0, 1}, {}};
  const SparseUpdate* const all[] = {&update, &update};
  std::vector<std::int32_t> weights{1, -1};
  apply(layout, all, weights);
  BOOST_TEST(weights[0] == -1);
  BOOST_TEST(weights[1] == 1);
}

BOOST_AUTO_TEST_SUITE_END()
