#include "runtime/exchange/in_flight_view.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"
#include "runtime/base/memory_bytes.h"

namespace rumor {

namespace {
constexpr std::uint64_t tile_params = 1 << 14;  // 64 KiB of overlay

// Makes the view show the weights at those of the positions that are in the stretch.
void show_weights(const std::vector<std::uint32_t>& index, compress::Stretch where,
                  std::span<const std::int32_t> weights, const compress::FloatView& view) {
  const std::size_t end = compress::first_entry(index, where.end);
  for (std::size_t e = compress::first_entry(index, where.begin); e < end; ++e)
    view.set(index[e], static_cast<std::uint32_t>(weights[index[e]]));
}
}  // namespace

InFlightView::InFlightView(ParamLayout layout, double weight) : layout_(std::move(layout)) { set_weight(weight); }

void InFlightView::set_weight(double weight) {
  RUMOR_CHECK(weight >= 0 && weight <= 1);
  weight_ = weight;
}

void InFlightView::sent(compress::SharedUpdate update, std::uint64_t period, std::span<const NodeId> live) {
  std::vector<compress::StepRun> shares = compress::step_runs(layout_, *update);
  for (compress::StepRun& run : shares) run.step = static_cast<std::int32_t>(std::lround(weight_ * run.step));
  const bool nothing =
      std::all_of(shares.begin(), shares.end(), [](const compress::StepRun& run) { return run.step == 0; });
  std::vector<NodeId> waiting_for;
  for (const NodeId& peer : live) {
    const auto heard = heard_.find(peer);
    if (heard == heard_.end() || heard->second < period) waiting_for.push_back(peer);
  }
  if (nothing || waiting_for.empty()) return;
  RUMOR_CHECK(own_.empty() || own_.back().period < period);
  stale_entries_ += update->index.size();
  own_.push_back({period, weight_, std::move(shares), std::move(update), std::move(waiting_for)});
  if (own_.size() > limits::in_flight_max) {
    stale_entries_ += own_.front().update->index.size();
    leave(own_.front());
    own_.pop_front();
  }
}

void InFlightView::answered(const NodeId& peer, std::uint64_t period) {
  std::uint64_t& heard = heard_[peer];
  heard = std::max(heard, period);
  take_off(peer, period);
}

void InFlightView::gone(const NodeId& peer) {
  heard_.erase(peer);
  take_off(peer, UINT64_MAX);
}

void InFlightView::take_off(const NodeId& peer, std::uint64_t period) {
  for (Own& own : own_) {
    if (own.period > period) break;
    if (std::erase(own.waiting_for, peer) != 0) stale_entries_ += own.update->index.size();
    if (own.waiting_for.empty()) leave(own);
  }
  std::erase_if(own_, [](const Own& own) { return own.waiting_for.empty(); });
}

// A walk through a stretch of the view, a tile at a time: sums all shares of the tile, shows them, then clears them.
struct InFlightView::Walk {
  // The walk's position in one own update.
  struct Cursor {
    const Own* own;
    std::size_t run = 0, added = 0, shown = 0;  // entries whose share is in the tile; that the view shows
  };

  std::span<const std::int32_t> weights;
  const compress::FloatView& view;
  std::vector<std::uint32_t>& tile;
  std::vector<Cursor> cursors;

  void begin(const Own& own, std::uint64_t position) {
    Cursor cursor{&own};
    cursor.added = cursor.shown = compress::first_entry(own.update->index, position);
    cursors.push_back(cursor);
  }

  // Adds the shares of one own update to the tile that begins at `begin`. Fetches weights and view meanwhile.
  void add_below(Cursor& cursor, std::uint64_t begin, std::uint64_t end) const {
    const Own& own = *cursor.own;
    const std::vector<std::uint32_t>& index = own.update->index;
    const std::vector<std::uint8_t>& negative = own.update->negative;
    const auto peers = static_cast<std::uint32_t>(own.waiting_for.size());
    for (; cursor.added < index.size() && index[cursor.added] < end; ++cursor.added) {
      const std::uint32_t i = index[cursor.added];
      while (cursor.added >= own.shares[cursor.run].first + own.shares[cursor.run].count) ++cursor.run;
      const std::uint32_t amount = static_cast<std::uint32_t>(own.shares[cursor.run].step) * peers;
      tile[i - begin] += negative[cursor.added] != 0 ? 0 - amount : amount;
      __builtin_prefetch(&weights[i]);
      __builtin_prefetch(&view.values[i], 1);
    }
  }

  void show(compress::Stretch where) {
    tile.resize(tile_params);
    for (std::uint64_t begin = where.begin; begin < where.end; begin += tile_params) {
      const std::uint64_t end = std::min(begin + tile_params, where.end);
      for (Cursor& cursor : cursors) add_below(cursor, begin, end);
      for (const Cursor& cursor : cursors)
        for (std::size_t e = cursor.shown; e < cursor.added; ++e) {
          const std::uint32_t i = cursor.own->update->index[e];
          view.set(i, static_cast<std::uint32_t>(weights[i]) + tile[i - begin]);
        }
      for (Cursor& cursor : cursors)
        for (; cursor.shown < cursor.added; ++cursor.shown) tile[cursor.own->update->index[cursor.shown] - begin] = 0;
    }
  }
};

void InFlightView::refresh(std::span<const std::int32_t> weights, const compress::FloatView& view,
                           Parallel& parallel) {
  RUMOR_CHECK(weights.size() == layout_.params() && view.values.size() == layout_.params());
  const std::uint64_t count = entries();
  stale_entries_ = 0;
  if (count == 0) return left_.clear();  // updates without entries
  tiles_.resize(std::max<std::size_t>(tiles_.size(), parallel.width()));
  compress::each_stretch(compress::all_of(layout_), count, parallel, [&](std::size_t piece, compress::Stretch where) {
    for (const compress::SharedUpdate& update : left_) show_weights(update->index, where, weights, view);
    Walk walk{weights, view, tiles_[piece], {}};
    for (const Own& own : own_) walk.begin(own, where.begin);
    if (!own_.empty()) walk.show(where);
  });
  left_.clear();
}

std::uint64_t InFlightView::entries() const {
  std::uint64_t entries = 0;
  for (const Own& own : own_) entries += own.update->index.size();
  for (const compress::SharedUpdate& update : left_) entries += update->index.size();
  return entries;
}

void InFlightView::lift(std::span<const std::int32_t> weights, const compress::FloatView& view,
                        Parallel& parallel) {
  RUMOR_CHECK(weights.size() == layout_.params() && view.values.size() == layout_.params());
  lifted();
  compress::each_stretch(compress::all_of(layout_), entries(), parallel, [&](std::size_t, compress::Stretch where) {
    for (const compress::SharedUpdate& update : left_) show_weights(update->index, where, weights, view);
    for (const Own& own : own_) show_weights(own.update->index, where, weights, view);
  });
}

std::vector<InFlightView::Expected> InFlightView::expected() {
  stale_entries_ = 0;
  left_.clear();
  std::vector<Expected> all;
  for (const Own& own : own_) all.push_back({own.update, own.shares, own.waiting_for.size()});
  return all;
}

std::vector<InFlightView::Waiting> InFlightView::waiting() const {
  std::vector<Waiting> all;
  for (const Own& own : own_) all.push_back({own.period, own.waiting_for.size(), own.weight});
  return all;
}

std::size_t InFlightView::memory_bytes() const {
  std::size_t bytes = capacity_bytes(tiles_, left_);
  for (const std::vector<std::uint32_t>& tile : tiles_) bytes += capacity_bytes(tile);
  for (const Own& own : own_) bytes += capacity_bytes(own.shares, own.waiting_for) + compress::part_bytes(own.update);
  for (const compress::SharedUpdate& update : left_) bytes += compress::part_bytes(update);
  return bytes;
}

}  // namespace rumor
