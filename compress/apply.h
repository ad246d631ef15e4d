// Apply: the entries of updates onto the weights, several updates together.
//
// Weights are far larger than caches, so applying waits for memory. Updates are therefore merged: all of them
// move through the weights side by side, a tile at a time, and the cache lines of the next tile are fetched
// while this one is worked on. A line that several updates touch comes once, and neighbours share a page.
// Wrap-around addition commutes, so the result is that of any other order.
//
// Thread: plain functions. Memory: a few words an update and tensor.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "compress/update.h"

namespace rumor::compress {

// Entries next to each other in one update, with one step.
struct EntryRun {
  const std::uint32_t* index = nullptr;
  const std::uint8_t* negative = nullptr;
  std::size_t count = 0;
  std::uint32_t step = 0;

  // What entry e adds to its weight, mod 2^32.
  std::uint32_t change(std::size_t e) const {
    const std::uint32_t minus = negative[e];
    return (step ^ (0 - minus)) + minus;
  }
};

// Where one update stands in a walk.
class EntryCursor {
 public:
  // Refers to `update`. Requires: `update` as encode() wants it.
  EntryCursor(const ParamLayout& layout, const SparseUpdate& update)
      : update_(&update), runs_(step_runs(layout, update)) {}

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
  std::size_t run_ = 0, at_ = 0, fetched_ = 0;
};

// Parameters of a tile: about as many entries as the nearest cache has lines.
std::uint64_t tile_params(const ParamLayout& layout, std::span<const SparseUpdate* const> updates);

// One update alone: entries are fetched so many ahead, a few at a time between those that are visited.
inline constexpr std::size_t fetch_ahead = 96, fetch_block = 16;

template <typename Fetch, typename Visit>
void walk_one(const ParamLayout& layout, const SparseUpdate& update, Fetch& fetch, Visit& visit) {
  const std::vector<std::uint32_t>& index = update.index;
  std::size_t fetched = 0;
  for (const StepRun& run : step_runs(layout, update))
    for (std::size_t at = run.first; at < run.first + run.count; at += fetch_block) {
      const std::size_t end = std::min(at + fetch_block, run.first + run.count);
      for (; fetched < std::min(end + fetch_ahead, index.size()); ++fetched) fetch(index[fetched]);
      visit(EntryRun{index.data() + at, update.negative.data() + at, end - at,
                     static_cast<std::uint32_t>(run.step)});
    }
}

// Walks all entries of all updates: fetch(position) some time before, visit(EntryRun) once. Positions of a
// later tile never come before those of an earlier one.
template <typename Fetch, typename Visit>
void walk_merged(const ParamLayout& layout, std::span<const SparseUpdate* const> updates, Fetch&& fetch,
                 Visit&& visit) {
  if (updates.size() == 1) return walk_one(layout, *updates[0], fetch, visit);
  std::vector<EntryCursor> cursors;
  cursors.reserve(updates.size());
  for (const SparseUpdate* update : updates) cursors.emplace_back(layout, *update);
  const std::uint64_t tile = tile_params(layout, updates);
  for (std::uint64_t end = tile;; end += tile) {
    for (EntryCursor& cursor : cursors) cursor.fetch_below(end + tile, fetch);
    for (EntryCursor& cursor : cursors) cursor.visit_below(end, visit);
    if (end >= layout.params()) return;
  }
}

// The floats a model computes with: value = weight * unit, wherever an entry lies.
struct FloatView {
  std::span<float> values;
  float unit = 1;

  void set(std::uint32_t position, std::uint32_t weight) const {
    values[position] = static_cast<float>(static_cast<std::int32_t>(weight)) * unit;
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
