// Apply: the entries of updates onto the weights, several updates together.
//
// Weights are far larger than caches, so applying waits for memory. Updates are therefore merged: all of them
// move through the weights side by side, a tile at a time, and the cache lines of the next tile are fetched
// while this one is worked on. A line that several updates touch comes once, and neighbours share a page.
// Wrap-around addition commutes, so the result is that of any other order.
//
// Walks over different stretches of positions touch nothing in common, so they may run at the same time.
//
// Thread: plain functions. Memory: a few words an update and tensor.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "compress/payload/update.h"
#include "runtime/base/parallel.h"

namespace rumor::compress {

// Entries next to each other in one update, with one step.
struct EntryRun {
  const std::uint32_t* index = nullptr;
  const std::uint8_t* negative = nullptr;
  std::size_t count = 0;
  std::uint32_t step = 0;

  // The amount that entry e adds to its weight, mod 2^32.
  std::uint32_t change(std::size_t e) const {
    const std::uint32_t minus = negative[e];
    return (step ^ (0 - minus)) + minus;
  }
};

// Positions [begin, end).
struct Stretch {
  std::uint64_t begin = 0, end = 0;
};

inline Stretch all_of(const ParamLayout& layout) {
  return {0, layout.params()};
}

// The first entry at `position` or behind it.
inline std::size_t first_entry(const std::vector<std::uint32_t>& index, std::uint64_t position) {
  return static_cast<std::size_t>(std::lower_bound(index.begin(), index.end(), position) - index.begin());
}

// Cuts a range into pieces, one for each thread that the entries keep busy, and calls task(i, piece) for each;
// i is less than parallel.width().
template <typename Task>
void each_stretch(Stretch all, std::uint64_t entries, Parallel& parallel, Task&& task) {
  constexpr std::uint64_t worth_a_thread = 16'384;
  const auto count = std::min<std::uint64_t>(parallel.width(), entries / worth_a_thread + 1);
  if (count <= 1) return task(std::size_t{0}, all);
  const auto edge = [&](std::size_t i) { return all.begin + (all.end - all.begin) * i / count; };
  parallel.each(count, [&](std::size_t i) { task(i, Stretch{edge(i), edge(i + 1)}); });
}

// The position of a walk in one update.
class EntryCursor {
 public:
  // Starts at the first entry from `begin` on. Refers to `update`. Requires: `update` as encode() requires it.
  EntryCursor(const ParamLayout& layout, const SparseUpdate& update, std::uint64_t begin)
      : update_(&update), runs_(step_runs(layout, update)), at_(first_entry(update.index, begin)), fetched_(at_) {
    while (run_ < runs_.size() && runs_[run_].first + runs_[run_].count <= at_) ++run_;
  }

  // Calls fetch(position) for the entries below `end` that were not fetched yet.
  template <typename Fetch>
  void fetch_below(std::uint64_t end, Fetch& fetch) {
    const std::vector<std::uint32_t>& index = update_->index;
    for (; fetched_ < index.size() && index[fetched_] < end; ++fetched_) fetch(index[fetched_]);
  }

  // Calls visit(run) until all entries below `end` have been visited.
  template <typename Visit>
  void visit_below(std::uint64_t end, Visit& visit) {
    const std::vector<std::uint32_t>& index = update_->index;
    while (run_ < runs_.size() && index[at_] < end) {
      const std::size_t run_end = runs_[run_].first + runs_[run_].count;
      const std::size_t begin = at_;
      while (at_ < run_end && index[at_] < end) ++at_;
      visit(EntryRun{index.data() + begin, update_->negative.data() + begin, at_ - begin,
                     static_cast<std::uint32_t>(runs_[run_].step)});
      if (at_ == run_end) ++run_;
    }
  }

 private:
  const SparseUpdate* update_;
  std::vector<StepRun> runs_;
  std::size_t run_ = 0, at_, fetched_;
};

// Parameters of a tile: about as many entries as the nearest cache has lines.
std::uint64_t tile_params(const ParamLayout& layout, std::span<const SparseUpdate* const> updates);

// For one update alone: entries are prefetched this far ahead, in blocks between the visited entries.
inline constexpr std::size_t fetch_ahead = 96, fetch_block = 16;

template <typename Fetch, typename Visit>
void walk_one(const ParamLayout& layout, const SparseUpdate& update, Stretch where, Fetch& fetch, Visit& visit) {
  const std::vector<std::uint32_t>& index = update.index;
  const std::size_t first = first_entry(index, where.begin), last = first_entry(index, where.end);
  std::size_t fetched = first;
  for (const StepRun& run : step_runs(layout, update)) {
    const std::size_t run_end = std::min(run.first + run.count, last);
    for (std::size_t at = std::max(run.first, first); at < run_end; at += fetch_block) {
      const std::size_t end = std::min(at + fetch_block, run_end);
      for (; fetched < std::min(end + fetch_ahead, last); ++fetched) fetch(index[fetched]);
      visit(EntryRun{index.data() + at, update.negative.data() + at, end - at,
                     static_cast<std::uint32_t>(run.step)});
    }
  }
}

// Walks all entries of all updates in a stretch: fetch(position) some time before, visit(EntryRun) once. Positions of
// a later tile never come before those of an earlier one.
template <typename Fetch, typename Visit>
void walk_merged(const ParamLayout& layout, std::span<const SparseUpdate* const> updates, Stretch where, Fetch&& fetch,
                 Visit&& visit) {
  if (updates.size() == 1) return walk_one(layout, *updates[0], where, fetch, visit);
  std::vector<EntryCursor> cursors;
  cursors.reserve(updates.size());
  for (const SparseUpdate* update : updates) cursors.emplace_back(layout, *update, where.begin);
  const std::uint64_t tile = tile_params(layout, updates);
  for (std::uint64_t end = where.begin + tile;; end += tile) {
    for (EntryCursor& cursor : cursors) cursor.fetch_below(std::min(end + tile, where.end), fetch);
    for (EntryCursor& cursor : cursors) cursor.visit_below(std::min(end, where.end), visit);
    if (end >= where.end) return;
  }
}

// The floats with which a model computes: value = weight * unit at every entry.
struct FloatView {
  std::span<float> values;
  float unit = 1;

  void set(std::uint32_t position, std::uint32_t weight) const {
    values[position] = static_cast<float>(static_cast<std::int32_t>(weight)) * unit;
  }
};

// The same values, read from the weights themselves. Another thread may add to them meanwhile: a value is then that
// before the addition or that after it.
struct WeightView {
  std::span<const std::int32_t> weights;
  float unit = 1;

  float operator[](std::uint32_t position) const {
    // Only read: the reference is to a constant in all but name.
    const std::atomic_ref<std::int32_t> weight(const_cast<std::int32_t&>(weights[position]));
    return static_cast<float>(weight.load(std::memory_order_relaxed)) * unit;
  }
};

// weights[i] += the changes of all updates at i, mod 2^32.
// Requires: weights.size() == layout.params(), updates as encode() wants them.
void apply(const ParamLayout& layout, std::span<const SparseUpdate* const> updates,
           std::span<std::int32_t> weights);
// And the view where they changed. Requires: view.values as large as weights.
void apply(const ParamLayout& layout, std::span<const SparseUpdate* const> updates,
           std::span<std::int32_t> weights, const FloatView& view);

}  // namespace rumor::compress
