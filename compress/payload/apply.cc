#include "compress/payload/apply.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor::compress {
namespace {

// Two tiles are in flight: this one, and the one that is being fetched. Each update in a tile costs a little
// whether it has entries there or not.
constexpr std::uint64_t tile_entries = 384, tile_entries_per_update = 16;
constexpr std::uint64_t tile_params_min = 1024;

void check_sizes(const ParamLayout& layout, std::span<const SparseUpdate* const> updates,
                 std::size_t weights) {
  RUMOR_CHECK(weights == layout.params());
  for (const SparseUpdate* update : updates)
    RUMOR_CHECK(update->index.empty() || update->index.back() < layout.params());
}

}  // namespace

std::uint64_t tile_params(const ParamLayout& layout, std::span<const SparseUpdate* const> updates) {
  std::uint64_t entries = 1;
  for (const SparseUpdate* update : updates) entries += update->index.size();
  const std::uint64_t wanted =
      std::max<std::uint64_t>(tile_entries, tile_entries_per_update * updates.size());
  return std::max<std::uint64_t>(tile_params_min, wanted * layout.params() / entries);
}

void apply(const ParamLayout& layout, std::span<const SparseUpdate* const> updates,
           std::span<std::int32_t> weights) {
  check_sizes(layout, updates, weights.size());
  std::int32_t* const to = weights.data();
  walk_merged(
      layout, updates, all_of(layout), [to](std::uint32_t position) { __builtin_prefetch(to + position, 1); },
      [to](const EntryRun& run) {
        for (std::size_t e = 0; e < run.count; ++e) {
          std::int32_t& weight = to[run.index[e]];
          weight = static_cast<std::int32_t>(static_cast<std::uint32_t>(weight) + run.change(e));
        }
      });
}

void apply(const ParamLayout& layout, std::span<const SparseUpdate* const> updates,
           std::span<std::int32_t> weights, const FloatView& view) {
  check_sizes(layout, updates, weights.size());
  RUMOR_CHECK(view.values.size() == weights.size());
  std::int32_t* const to = weights.data();
  float* const values = view.values.data();
  walk_merged(
      layout, updates, all_of(layout),
      [=](std::uint32_t position) {
        __builtin_prefetch(to + position, 1);
        __builtin_prefetch(values + position, 1);
      },
      [=](const EntryRun& run) {
        for (std::size_t e = 0; e < run.count; ++e) {
          const std::uint32_t i = run.index[e];
          const std::uint32_t weight = static_cast<std::uint32_t>(to[i]) + run.change(e);
          to[i] = static_cast<std::int32_t>(weight);
          view.set(i, weight);
        }
      });
}

}  // namespace rumor::compress
