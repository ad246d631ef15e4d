// The fused pass against compress/select/scan_kernels.h, and selection against a plain sort: the same bits, nothing
// outside.
#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "compress/select/scan_kernels.h"
#include "compress/select/scan_pass.h"
#include "runtime/base/prng.h"
#include "tests/gpu/target.h"

using namespace rumor;
using namespace rumor::gpu;

BOOST_AUTO_TEST_SUITE(gpu_scan)

namespace {

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
std::uint32_t tiles_of(std::size_t params) {
  return static_cast<std::uint32_t>((params + tile_params - 1) / tile_params);
}

// Like a residual, all of a few values, any finite bits, or with infinities and NaNs among them.
enum class Kind { residual, ties, any_finite, not_finite };
constexpr Kind kinds[] = {Kind::residual, Kind::ties, Kind::any_finite, Kind::not_finite};

float draw(Prng& prng, Kind kind) {
  const float sign = prng.chance(1, 2) ? -1.0f : 1.0f;
  if (kind == Kind::residual) {
    const float ratio = static_cast<float>(prng.below(1 << 20)) / (1 << 20);
    return sign * 1e-3f * ratio * ratio * ratio;
  }
  if (kind == Kind::ties) return sign * static_cast<float>(prng.below(3)) * 0.25f;
  if (kind == Kind::not_finite && prng.chance(1, 300)) {
    const float odd[] = {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
    return sign * odd[prng.below(2)];
  }
  for (;;) {  // denormals, zeros of both signs and the largest, too
    const auto any = std::bit_cast<float>(static_cast<std::uint32_t>(prng.next()));
    if (std::isfinite(any)) return any;
  }
}

std::vector<float> drawn(Prng& prng, Kind kind, std::size_t size) {
  std::vector<float> values(size);
  for (float& value : values) value = draw(prng, kind);
  return values;
}

std::vector<std::uint32_t> sizes(Prng& prng) {
  std::vector<std::uint32_t> all{0,   1,    2,    3,    4,    5,    31,   32,    33,    127,  128,
                                 129, 1023, 1024, 1025, 8191, 8192, 8193, 16384, 24581, 40000};
  for (int i = 0; i < 6; ++i) all.push_back(static_cast<std::uint32_t>(1 + prng.below(30000)));
  return all;
}

// Which NaN a sum gives is open; that it is one is not.
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return bits_of(x) == bits_of(y) || (std::isnan(x) && std::isnan(y)); });
}

struct ScanCase {
  std::vector<float> residual, change;
  std::vector<std::uint16_t> bf16;
  std::uint32_t cutoff = 1;
  Change form = Change::floats;
};

struct Expected {
  std::vector<float> residual, value;
  std::vector<std::uint32_t> index;
};

Expected reference(ScanCase c) {
  compress::ScanInput input;
  input.residual = c.residual.data();
  input.change = c.change.data();
  input.bf16 = c.bf16.data();
  Expected expected;
  expected.index.resize(c.residual.size() + compress::scan_slack);
  expected.value.resize(expected.index.size());
  const auto form = c.form == Change::floats ? compress::ChangeForm::floats : compress::ChangeForm::bf16;
  const std::size_t count = compress::scan_kernels_portable.scan[static_cast<std::size_t>(form)](
      input, 0, c.residual.size(), c.cutoff, expected.index.data(), expected.value.data());
  expected.index.resize(count);
  expected.value.resize(count);
  expected.residual = std::move(c.residual);
  return expected;
}

// Runs the slot with so much room and compares with the reference: all of it where all have room, and nothing but the
// candidates of the tiles that do not fit left out where not.
void check_scan(const Target& target, const ScanCase& c, std::size_t skip, std::uint32_t room) {
  const Expected expected = reference(c);
  const auto params = static_cast<std::uint32_t>(c.residual.size());
  const Guarded<float> residual(target, c.residual, skip), change(target, c.change, skip), value(target, room);
  const Guarded<std::uint16_t> bf16(target, c.bf16, skip);
  const Guarded<std::uint32_t> index(target, room);
  const Guarded<Tile> tiles(target, tiles_of(params));
  const Guarded<Selection> selection(target, 1);
  const ScanArgs args{residual.data(), change.data(), bf16.data(),  params,           c.cutoff, index.data(),
                      value.data(),    room,          tiles.data(), selection.data(), c.form};
  target.table().scan(target.device(), &args);
  BOOST_TEST(same_bits(residual.read(), expected.residual));
  const Selection found = selection.read()[0];
  BOOST_TEST(found.candidates == expected.index.size());
  const auto bad =
      std::find_if(expected.residual.begin(), expected.residual.end(), [](float v) { return !std::isfinite(v); });
  BOOST_TEST(
      found.first_not_finite ==
      (bad == expected.residual.end() ? no_position : static_cast<std::uint32_t>(bad - expected.residual.begin())));
  const std::vector<std::uint32_t> indices = index.read();
  const std::vector<float> values = value.read();
  std::vector<std::uint32_t> got_index;
  std::vector<float> got_value, want_value;
  std::vector<std::uint32_t> want_index;
  std::uint32_t t = 0;
  for (const Tile tile : tiles.read()) {
    const std::uint32_t end = ++t * tile_params;
    BOOST_TEST_REQUIRE(std::uint64_t{tile.begin} + tile.count <= room);
    got_index.insert(got_index.end(), indices.begin() + tile.begin, indices.begin() + tile.begin + tile.count);
    got_value.insert(got_value.end(), values.begin() + tile.begin, values.begin() + tile.begin + tile.count);
    if (tile.count == 0 && room < expected.index.size()) continue;  // had no room, or nothing
    for (std::size_t e = 0; e < expected.index.size(); ++e)
      if (expected.index[e] >= end - tile_params && expected.index[e] < end) {
        want_index.push_back(expected.index[e]);
        want_value.push_back(expected.value[e]);
      }
  }
  BOOST_TEST((got_index == want_index));
  BOOST_TEST(same_bits(got_value, want_value));
}

struct Entry {
  std::uint32_t index;
  std::uint8_t negative;
  bool operator==(const Entry&) const = default;
};

// The `wanted` largest of `least` or more, of equal ones the first; ascending.
std::vector<Entry> largest(const std::vector<float>& values, std::uint32_t wanted, std::uint32_t least) {
  std::vector<std::uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0u);
  std::erase_if(order, [&](std::uint32_t i) { return compress::magnitude_bits(values[i]) < least; });
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return compress::magnitude_bits(values[a]) > compress::magnitude_bits(values[b]);
  });
  order.resize(std::min<std::size_t>(order.size(), wanted));
  std::sort(order.begin(), order.end());
  std::vector<Entry> entries;
  for (const std::uint32_t i : order) entries.push_back({i, static_cast<std::uint8_t>(std::signbit(values[i]))});
  return entries;
}

// Selects among the values themselves (cutoff 0), or among the candidates of a scan.
void check_select(const Target& target, const std::vector<float>& values, std::uint32_t wanted, std::uint32_t least,
                  std::uint32_t cutoff, std::size_t skip) {
  const auto params = static_cast<std::uint32_t>(values.size());
  const std::vector<float> nothing(values.size(), 0.0f);
  const Guarded<float> residual(target, values, skip), change(target, nothing), value(target, params);
  const Guarded<std::uint32_t> candidates(target, params), bins(target, radix_bins),
      counts(target, 2 * tiles_of(params));
  const Guarded<Tile> tiles(target, tiles_of(params));
  const Guarded<Selection> selection(target, 1);
  const Guarded<std::uint32_t> index(target, wanted, skip);
  const Guarded<std::uint8_t> negative(target, wanted, skip);
  constexpr std::uint32_t first = 1000;  // position of the first value in the layout
  Source source{residual.data(), nullptr, nullptr, params, 0, first};
  std::vector<float> sums = values;
  if (cutoff != 0) {
    for (float& sum : sums) sum += 0.0f;  // as the scan does: -0 becomes 0
    const ScanArgs args{residual.data(), change.data(),     nullptr,       params,
                        cutoff,          candidates.data(), value.data(),  params,
                        tiles.data(),    selection.data(),  Change::floats};
    target.table().scan(target.device(), &args);
    source = {value.data(), candidates.data(), tiles.data(), params, params, first};
  }
  const SelectScratch scratch{bins.data(), counts.data()};
  target.table().select(target.device(), &source, wanted, least, scratch, selection.data());
  target.table().emit(target.device(), &source, scratch, selection.data(), index.data(), negative.data());
  const std::vector<Entry> expected = largest(sums, wanted, std::max(least, cutoff));
  const Selection found = selection.read()[0];
  BOOST_TEST_REQUIRE(found.selected == expected.size());
  const std::vector<std::uint32_t> got_index = index.read();
  const std::vector<std::uint8_t> got_negative = negative.read();
  std::vector<Entry> got;
  for (std::uint32_t e = 0; e < found.selected; ++e) got.push_back({got_index[e] - first, got_negative[e]});
  BOOST_TEST((got == expected));
  bins.read();
  counts.read();
  if (expected.empty()) return;
  std::uint32_t threshold = 0xffff'ffff;
  for (const Entry& entry : expected) threshold = std::min(threshold, compress::magnitude_bits(sums[entry.index]));
  // A sum that is no number has other bits on a GPU.
  BOOST_TEST((found.threshold == threshold || std::min(found.threshold, threshold) > compress::infinity_bits));
}

}  // namespace

BOOST_AUTO_TEST_CASE(scan_gives_the_bits_of_the_portable_kernels) {
  Prng prng(1);
  std::uint64_t order = 0;
  for (const std::uint32_t size : sizes(prng)) {
    for (const Kind kind : kinds) {
      const Target target(order++ % 5);
      ScanCase c{drawn(prng, kind, size), drawn(prng, kind, size), {}};
      for (std::uint32_t i = 0; i < size; ++i) c.bf16.push_back(static_cast<std::uint16_t>(bits_of(c.change[i]) >> 16));
      c.form = prng.chance(1, 2) ? Change::floats : Change::bf16;
      const std::uint32_t cutoffs[] = {1, bits_of(0.5f), bits_of(8e-4f), compress::infinity_bits};
      c.cutoff = cutoffs[prng.below(4)];
      const std::size_t skip = prng.chance(1, 2) ? 0 : prng.below(4);
      check_scan(target, c, skip, size);
    }
  }
}

BOOST_AUTO_TEST_CASE(candidates_without_room_are_counted_and_not_written) {
  Prng prng(2);
  for (std::uint64_t order = 0; order < 12; ++order) {
    const Target target(order);
    const std::size_t size = 1 + prng.below(60000);
    ScanCase c{drawn(prng, Kind::residual, size), drawn(prng, Kind::residual, size), {}};
    c.bf16.assign(size, 0);
    c.cutoff = bits_of(5e-4f);
    check_scan(target, c, 0, static_cast<std::uint32_t>(prng.below(reference(c).index.size() + 1)));
  }
}

BOOST_AUTO_TEST_CASE(selection_is_that_of_a_sort) {
  Prng prng(3);
  std::uint64_t order = 0;
  for (const std::uint32_t size : sizes(prng)) {
    for (const Kind kind : kinds) {
      const Target target(order++ % 7);
      const std::vector<float> values = drawn(prng, kind, size);
      const std::uint32_t wanted[] = {0, 1, size / 100, size, static_cast<std::uint32_t>(prng.below(size + 1))};
      const std::uint32_t least = prng.chance(1, 2) ? 1 : bits_of(3e-8f);
      check_select(target, values, wanted[prng.below(5)], least, 0, prng.below(4));
      const std::uint32_t cutoffs[] = {least, std::max(least, bits_of(5e-4f)), compress::infinity_bits};
      check_select(target, values, wanted[prng.below(5)], least, cutoffs[prng.below(3)], 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(all_equal_and_all_zero) {
  for (std::uint64_t order = 0; order < 3; ++order) {
    const Target target(order);
    check_select(target, std::vector<float>(20000, -0.5f), 777, 1, 0, 0);
    check_select(target, std::vector<float>(20000, 0.5f), 12345, 1, 1, 0);
    check_select(target, std::vector<float>(20000, 0.0f), 777, 1, 0, 0);
    check_select(target, std::vector<float>(20000, -0.0f), 777, 1, 1, 0);
    check_select(target, std::vector<float>(9000, std::numeric_limits<float>::denorm_min()), 100, 1, 1, 1);
    check_select(target, std::vector<float>(9000, std::numeric_limits<float>::max()), 8999, 1, 1, 1);
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_selected_among_candidates_that_had_no_room) {
  const Target target;
  const std::vector<float> values(10000, 1.0f), nothing(10000, 0.0f);
  const Guarded<float> residual(target, values), change(target, nothing), value(target, 100);
  const Guarded<std::uint32_t> candidates(target, 100), bins(target, radix_bins), counts(target, 4), index(target, 50);
  const Guarded<std::uint8_t> negative(target, 50);
  const Guarded<Tile> tiles(target, 2);
  const Guarded<Selection> selection(target, 1);
  const ScanArgs args{residual.data(), change.data(),    nullptr,       10000, 1, candidates.data(), value.data(), 100,
                      tiles.data(),    selection.data(), Change::floats};
  target.table().scan(target.device(), &args);
  const Source source{value.data(), candidates.data(), tiles.data(), 10000, 100, 0};
  const SelectScratch scratch{bins.data(), counts.data()};
  target.table().select(target.device(), &source, 50, 1, scratch, selection.data());
  target.table().emit(target.device(), &source, scratch, selection.data(), index.data(), negative.data());
  BOOST_TEST(selection.read()[0].candidates == 10000u);
  BOOST_TEST(selection.read()[0].selected == 0u);
  index.read();
  negative.read();
}

// More tiles than one block places at a time, their candidates in any order, as a scan of 74 million parameters leaves
// them.
BOOST_AUTO_TEST_CASE(tiles_by_the_thousand) {
  Prng prng(6);
  constexpr std::uint32_t tile_count = 9001, params = tile_count * tile_params - 5;
  std::vector<std::uint32_t> order(tile_count);
  std::iota(order.begin(), order.end(), 0u);
  prng.shuffle(std::span<std::uint32_t>(order));
  std::vector<Tile> tiles(tile_count);
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  std::vector<std::pair<std::uint32_t, float>> all;
  for (const std::uint32_t t : order) {
    tiles[t] = {static_cast<std::uint32_t>(index.size()), static_cast<std::uint32_t>(prng.below(3))};
    for (std::uint32_t c = 0; c < tiles[t].count; ++c) {
      index.push_back(t * tile_params + c * 4000 + static_cast<std::uint32_t>(prng.below(4000)));
      value.push_back(static_cast<float>(1 + prng.below(4)) * (prng.chance(1, 2) ? 1.0f : -1.0f));
      all.emplace_back(index.back(), value.back());
    }
  }
  std::sort(all.begin(), all.end());
  std::vector<float> ascending;
  for (const auto& [position, one] : all) ascending.push_back(one);
  const auto count = static_cast<std::uint32_t>(index.size());
  const Target target(8);
  const Guarded<std::uint32_t> candidates(target, index), bins(target, radix_bins), counts(target, 2 * tile_count);
  const Guarded<float> values(target, value);
  const Guarded<Tile> on_tiles(target, tiles);
  const Guarded<Selection> selection(target, std::vector<Selection>{{count, no_position, 0, 0, 0}});
  const std::uint32_t wanted = count * 2 / 3;
  const Guarded<std::uint32_t> got_index(target, wanted);
  const Guarded<std::uint8_t> got_negative(target, wanted);
  const Source source{values.data(), candidates.data(), on_tiles.data(), params, count, 0};
  const SelectScratch scratch{bins.data(), counts.data()};
  target.table().select(target.device(), &source, wanted, 1, scratch, selection.data());
  target.table().emit(target.device(), &source, scratch, selection.data(), got_index.data(), got_negative.data());
  const std::vector<Entry> expected = largest(ascending, wanted, 1);
  const std::vector<std::uint32_t> positions = got_index.read();
  const std::vector<std::uint8_t> signs = got_negative.read();
  BOOST_TEST_REQUIRE(selection.read()[0].selected == wanted);
  bool same = true;
  for (std::uint32_t e = 0; e < wanted; ++e)
    same = same && positions[e] == all[expected[e].index].first && signs[e] == expected[e].negative;
  BOOST_TEST(same);
}

BOOST_AUTO_TEST_CASE(what_was_sent_leaves_the_residual_and_magnitudes_add_up_in_order) {
  Prng prng(4);
  for (const std::uint32_t size : {1u, 5u, 300u, 70000u, 600000u}) {
    const Target target(size % 3);
    std::vector<float> values = drawn(prng, Kind::residual, size);
    std::vector<std::uint32_t> entries;
    for (std::uint32_t i = 0; i < size; ++i)
      if (values[i] != 0 && prng.chance(1, 20)) entries.push_back(i);
    const auto count = static_cast<std::uint32_t>(entries.size());
    const std::uint32_t pieces = (size - 1) / compress::piece_params + 1;
    const Guarded<float> residual(target, values, size % 4);
    const Guarded<std::uint32_t> index(target, entries);
    const Guarded<double> sums(target, pieces);
    for (const std::uint32_t first : {0u, size / 3}) {
      const auto from = std::lower_bound(entries.begin(), entries.end(), first) - entries.begin();
      target.table().sum_magnitudes(target.device(), residual.data(), index.data() + from,
                                    count - static_cast<std::uint32_t>(from), first, 18, pieces, sums.data());
      std::vector<double> expected(pieces, 0.0);
      for (const std::uint32_t i : entries)
        if (i >= first) expected[(i - first) >> 18] += std::abs(double{values[i]});
      BOOST_TEST((sums.read() == expected));
    }
    target.table().take_sent(target.device(), residual.data(), index.data(), count, 3.1e-4f);
    for (const std::uint32_t i : entries) values[i] -= std::copysign(3.1e-4f, values[i]);
    BOOST_TEST(same_bits(residual.read(), values));
    const std::vector<float> changes = drawn(prng, Kind::residual, count);
    const Guarded<float> change(target, changes);
    target.table().add_changes(target.device(), residual.data(), index.data(), change.data(), count);
    for (std::uint32_t e = 0; e < count; ++e) values[entries[e]] += changes[e];
    BOOST_TEST(same_bits(residual.read(), values));
    target.table().put(target.device(), index.data(), change.data(), count, residual.data());
    for (std::uint32_t e = 0; e < count; ++e) values[entries[e]] = changes[e];
    BOOST_TEST(same_bits(residual.read(), values));
    const std::vector<std::uint32_t> edge_values{0, 1, size / 2, size, 0x7fff'ffff};
    const Guarded<std::uint32_t> edges(target, edge_values), below(target, edge_values.size());
    target.table().count_below(target.device(), index.data(), count, edges.data(), 5, below.data());
    const std::vector<std::uint32_t> got = below.read();
    for (std::size_t e = 0; e < edge_values.size(); ++e)
      BOOST_TEST(got[e] == std::lower_bound(entries.begin(), entries.end(), edge_values[e]) - entries.begin());
    if (count == 0) continue;
    std::vector<std::uint32_t> at(1000);
    for (std::uint32_t& place : at) place = static_cast<std::uint32_t>(prng.below(count));
    const Guarded<std::uint32_t> places(target, at), gathered(target, at.size());
    target.table().gather(target.device(), index.data(), places.data(), 1000, gathered.data());
    const std::vector<std::uint32_t> all = gathered.read();
    for (std::size_t i = 0; i < at.size(); ++i) BOOST_TEST(all[i] == entries[at[i]]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
