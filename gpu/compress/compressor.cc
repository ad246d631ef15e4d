#include "gpu/compress/compressor.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "compress/select/compressor_stats.h"
#include "gpu/device/scan_form.h"
#include "runtime/base/check.h"

namespace rumor::gpu {

using compress::Emit;
using compress::RankGroup;
using compress::Scope;

namespace {

// Half a grid unit, as magnitude bits. Smaller values round to zero and can never be sent.
std::uint32_t floor_bits(int grid_bits) {
  return compress::magnitude_bits(std::ldexp(1.0f, -grid_bits - 1));
}

// The change of the parameters from `offset` on.
ScanArgs from_offset(ScanArgs change, std::uint32_t offset) {
  const auto move = [&](auto*& pointer) {
    if (pointer != nullptr) pointer += offset;
  };
  move(change.change);
  move(change.bf16);
  move(change.rule.first);
  move(change.rule.second);
  move(change.rule.last);
  move(change.rule.weights);
  return change;
}

}  // namespace

Result<DeviceCompressor> DeviceCompressor::create(const Gpu& gpu, const ParamLayout& layout,
                                                  compress::CompressorOptions options) {
  RUMOR_CHECK(options.density > 0 && options.density <= 1);
  RUMOR_CHECK(options.grid_bits >= 0 && options.grid_bits <= 30);
  DeviceCompressor made(gpu, layout, options);
  const std::uint32_t params = layout.params();
  made.entries_ = made.entries_of(options.density);
  if (options.scope == Scope::global) {
    made.add_rank(0, params);
  } else {
    for (const TensorInfo& tensor : layout.tensors()) made.add_rank(tensor.offset, tensor.size);
  }
  const std::size_t tiles = made.places_.back().first_tile + scan_tiles_of(made.ranks_.back().size);
  for (Result<void> room :
       {made.residual_.make_room(gpu, params, "the residual"), made.tiles_.make_room(gpu, tiles, "selection"),
        made.tile_counts_.make_room(gpu, 2 * tiles, "selection"), made.bins_.make_room(gpu, radix_bins, "selection"),
        made.selections_.make_room(gpu, made.ranks_.size(), "selection")})
    if (!room) return room.error();
  Result<TensorCounter> counter = TensorCounter::create(gpu, layout);
  if (!counter) return counter.error();
  made.counter_ = std::move(*counter);
  gpu.table().fill(gpu.device(), made.residual_.data(), 0, params * sizeof(float));
  return made;
}

void DeviceCompressor::add_rank(std::uint32_t offset, std::uint32_t size) {
  Place place{.offset = offset};
  if (!places_.empty()) place.first_tile = places_.back().first_tile + scan_tiles_of(ranks_.back().size);
  places_.push_back(place);
  ranks_.push_back({.size = size});
}

std::uint32_t DeviceCompressor::entries_of(double density) const {
  const double wanted = std::round(density * layout_.params());
  return static_cast<std::uint32_t>(std::clamp(wanted, 1.0, static_cast<double>(layout_.params())));
}

// The candidates of the ranks are stored one rank after another.
Result<void> DeviceCompressor::make_room(DeviceUpdate& out) {
  std::size_t candidates = 0, wanted = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    wanted += ranks_[r].wanted;
    places_[r].first_candidate = candidates;
    places_[r].room = static_cast<std::uint32_t>(std::min<std::size_t>(ranks_[r].room(), ranks_[r].size));
    candidates += places_[r].room;
  }
  for (Result<void> room :
       {candidate_index_.make_room(*gpu_, candidates, "candidates"),
        candidate_value_.make_room(*gpu_, candidates, "candidates"),
        pending_.make_room(*gpu_, wanted, "positions of an update"), out.make_room(*gpu_, wanted)})
    if (!room) return room;
  return {};
}

// Takes what was sent out of the residual and lets the rest fade, as Compressor does.
void DeviceCompressor::finish_update() {
  const float kept = compress::residual_kept(options_.residual_decay, pending_count_, layout_.params());
  for (std::size_t r = 0; r < ranks_.size() && pending_count_ > 0; ++r)
    gpu_->table().take_sent(gpu_->device(), residual_.data(), pending_.data() + places_[r].first, places_[r].selected,
                         ranks_[r].step);
  if (kept != 1) gpu_->table().model.scale(gpu_->device(), layout_.params(), kept, residual_.data());
  pending_count_ = 0;
}

// Forgets the last update, so that none of it leaves the residual.
void DeviceCompressor::forget_update() {
  pending_count_ = 0;
  for (Place& place : places_) place.first = place.selected = 0;
  for (RankGroup& rank : ranks_) rank.selected = 0;
}

void DeviceCompressor::scan(const ScanArgs& change) {
  const std::uint32_t least = floor_bits(options_.grid_bits);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    RankGroup& rank = ranks_[r];
    Place& place = places_[r];
    rank.cutoff = rank.share_of_threshold(rank.margin.share(), least);
    place.looks_at_all = false;
    ScanArgs args = from_offset(change, place.offset);
    args.residual = residual_.data() + place.offset;
    args.params = rank.size;
    args.cutoff = rank.cutoff;
    args.index = candidate_index_.data() + place.first_candidate;
    args.value = candidate_value_.data() + place.first_candidate;
    args.room = place.room;
    args.tiles = tiles_.data() + place.first_tile;
    args.selection = selections_.data() + r;
    gpu_->table().scan(gpu_->device(), &args);
  }
}

Source DeviceCompressor::source_of(std::size_t rank) const {
  const Place& place = places_[rank];
  const std::uint32_t size = ranks_[rank].size;
  if (place.looks_at_all) return {residual_.data() + place.offset, nullptr, nullptr, size, 0, place.offset};
  return {candidate_value_.data() + place.first_candidate,
          candidate_index_.data() + place.first_candidate,
          tiles_.data() + place.first_tile,
          size,
          place.room,
          place.offset};
}

void DeviceCompressor::select(std::size_t rank) {
  const Source source = source_of(rank);
  gpu_->table().select(gpu_->device(), &source, ranks_[rank].wanted, floor_bits(options_.grid_bits),
                       {bins_.data(), tile_counts_.data()}, selections_.data() + rank);
}

Result<std::vector<Selection>> DeviceCompressor::read_selections() {
  std::vector<Selection> selections(ranks_.size());
  if (Result<void> read = selections_.read(selections.data(), selections.size()); !read) return read.error();
  return selections;
}

// Selects the largest of each rank among its candidates, or among all parameters if the candidates are too few or too
// many.
Result<void> DeviceCompressor::choose(DeviceUpdate& out) {
  for (std::size_t r = 0; r < ranks_.size(); ++r) select(r);
  Result<std::vector<Selection>> selections = read_selections();
  if (!selections) return selections.error();
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    if (const std::uint32_t at = (*selections)[r].first_not_finite; at != no_position)
      return compress::not_finite_at(layout_, places_[r].offset + at);
  bool again = false;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    RankGroup& rank = ranks_[r];
    Place& place = places_[r];
    const std::uint32_t found = (*selections)[r].candidates;
    place.candidates = std::min(found, place.room);
    if (rank.wanted == 0) continue;
    if (rank.threshold != 0) rank.margin.adapt(place.candidates, rank.wanted, place.room);
    const bool too_few = found < rank.wanted && rank.cutoff > floor_bits(options_.grid_bits);
    if (found <= place.room && !too_few) continue;
    ++second_looks_;
    place.looks_at_all = again = true;
    select(r);
  }
  if (again) selections = read_selections();
  if (!selections) return selections.error();
  return emit(*selections, out);
}

// Makes the update from the selections: positions, signs, and the size of entries.
Result<void> DeviceCompressor::emit(const std::vector<Selection>& selections, DeviceUpdate& out) {
  const GpuTable& table = gpu_->table();
  std::uint32_t total = 0;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    places_[r].first = total;
    ranks_[r].selected = places_[r].selected = selections[r].selected;
    if (selections[r].selected == 0) continue;
    ranks_[r].threshold = selections[r].threshold;
    const Source source = source_of(r);
    table.emit(gpu_->device(), &source, {bins_.data(), tile_counts_.data()}, selections_.data() + r,
               out.index.data() + total, out.negative.data() + total);
    total += selections[r].selected;
  }
  out.count = total;
  if (total == 0) return out.set_steps(*gpu_);
  if (Result<void> set = set_steps(out); !set) return set;
  table.copy_within(gpu_->device(), pending_.data(), out.index.data(), total * sizeof(std::uint32_t));
  pending_count_ = total;
  return {};
}

// Sets the size of an entry of each rank group, and the number of entries of each tensor.
Result<void> DeviceCompressor::set_steps(DeviceUpdate& out) {
  std::vector<float> means;
  if (options_.emit == Emit::mean) {
    Result<std::vector<float>> made = mean_magnitudes(out);
    if (!made) return made.error();
    means = std::move(*made);
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    RankGroup& rank = ranks_[r];
    rank.step_units = 0;
    if (rank.selected == 0) continue;
    const float worth = means.empty() ? std::bit_cast<float>(rank.threshold) : means[r];
    if (Result<void> step = rank.set_step(worth, options_.grid_bits); !step) return step;
  }
  if (options_.scope == Scope::global) {
    out.step = ranks_.front().step_units;
    if (Result<void> counted = counter_.count(out); !counted) return counted;
  } else {
    compress::SparseUpdate steps;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      steps.tensor_step.push_back(ranks_[r].step_units);
      out.counts.push_back(places_[r].selected);
    }
    compress::normalize_steps(steps);
    out.step = steps.step;
    out.tensor_step = std::move(steps.tensor_step);
  }
  return out.set_steps(*gpu_);
}

// Added in the order of Compressor: within each piece of compress/select/scan_pass.h, then over the pieces in order.
Result<std::vector<float>> DeviceCompressor::mean_magnitudes(const DeviceUpdate& update) {
  constexpr auto piece_shift = static_cast<std::uint32_t>(std::countr_zero(compress::piece_params));
  const auto pieces_of = [](const RankGroup& rank) { return (rank.size - 1) / compress::piece_params + 1; };
  std::size_t all = 0;
  for (std::size_t r = 0; r < ranks_.size(); all += pieces_of(ranks_[r++])) places_[r].first_sum = all;
  if (Result<void> room = sums_.make_room(*gpu_, all, "sums"); !room) return room.error();
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    gpu_->table().sum_magnitudes(gpu_->device(), residual_.data(), update.index.data() + places_[r].first,
                                 places_[r].selected, places_[r].offset, piece_shift, pieces_of(ranks_[r]),
                                 sums_.data() + places_[r].first_sum);
  std::vector<double> sums(all);
  if (Result<void> read = sums_.read(sums.data(), all); !read) return read.error();
  std::vector<float> means;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    double sum = 0;
    for (std::size_t p = 0; p < pieces_of(ranks_[r]); ++p) sum += sums[places_[r].first_sum + p];
    means.push_back(static_cast<float>(sum / static_cast<double>(places_[r].selected)));
  }
  return means;
}

Result<void> DeviceCompressor::absorb(const ScanArgs& change, DeviceUpdate& out) {
  out.clear();
  compress::share_entries(ranks_, entries_, layout_.params());
  for (RankGroup& rank : ranks_) rank.want_extra();
  left_out_.forget();
  finish_update();  // first: make_room() may reallocate pending_ and lose its contents
  forget_update();
  if (Result<void> room = make_room(out); !room) return room;
  scan(change);
  Result<void> chosen = choose(out);
  if (!chosen) {
    out.clear();
    forget_update();
  }
  return chosen;
}

Result<void> DeviceCompressor::absorb(const DeviceArray<float>& delta, DeviceUpdate& out) {
  RUMOR_CHECK(delta.size() >= layout_.params());
  ScanArgs args{};
  args.change = delta.data();
  args.form = Change::floats;
  return absorb(args, out);
}

Result<void> DeviceCompressor::absorb_bf16(const DeviceArray<std::uint16_t>& delta, DeviceUpdate& out) {
  RUMOR_CHECK(delta.size() >= layout_.params());
  ScanArgs args{};
  args.bf16 = delta.data();
  args.form = Change::bf16;
  return absorb(args, out);
}

Result<void> DeviceCompressor::absorb_step(const StepRule& rule, const DeviceArray<float>& gradient,
                                           DeviceUpdate& out) {
  RUMOR_CHECK(gradient.size() >= layout_.params());
  ScanArgs args{};
  args.change = gradient.data();
  args.form = form_of(rule.kind);
  args.rule = rule;
  return absorb(args, out);
}

void DeviceCompressor::add(const DeviceArray<std::uint32_t>& index, const DeviceArray<float>& change,
                           std::uint32_t count) {
  RUMOR_CHECK(count <= index.size() && count <= change.size());
  finish_update();
  gpu_->table().add_changes(gpu_->device(), residual_.data(), index.data(), change.data(), count);
}

Result<void> DeviceCompressor::shrink(std::uint32_t entries, DeviceUpdate& out) {
  const std::uint64_t sent = pending_count_;
  RUMOR_CHECK(sent == out.count && entries >= 1 && entries <= sent);
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    ranks_[r].wanted = static_cast<std::uint32_t>(places_[r].selected * std::uint64_t{entries} / sent);
  return choose_again(out);
}

Result<void> DeviceCompressor::leave_out(std::span<const std::uint32_t> positions, DeviceUpdate& out) {
  RUMOR_CHECK(pending_count_ == out.count && positions.size() <= out.count);
  if (Result<void> added = left_out_.add(*gpu_, positions); !added) return added;
  auto from = positions.begin();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const auto to = std::lower_bound(from, positions.end(), places_[r].offset + ranks_[r].size);
    ranks_[r].leave_out(static_cast<std::uint32_t>(to - from));
    from = to;
  }
  return choose_again(out);
}

// The candidates, and the residual they come from, are unchanged since the last absorb(): it still holds what was sent.
Result<void> DeviceCompressor::choose_again(DeviceUpdate& out) {
  out.clear();
  forget_update();
  hide_left_out();
  for (std::size_t r = 0; r < ranks_.size(); ++r) select(r);
  const Result<std::vector<Selection>> selections = read_selections();
  const Result<void> emitted = selections ? emit(*selections, out) : selections.error();
  if (!left_out_.empty()) left_out_.show(*gpu_, residual_.data());
  if (emitted) return {};
  out.clear();
  forget_update();
  // As in Compressor: if the mean of the largest exceeds the grid, the update stays empty.
  if (emitted.error().code == Errc::limit) return {};
  return emitted;
}

// In the residual, and among the candidates, which are copies of it.
void DeviceCompressor::hide_left_out() {
  if (left_out_.empty()) return;
  left_out_.hide(*gpu_, residual_.data());
  for (const Place& place : places_) {
    if (place.looks_at_all) continue;
    gpu_->table().gather(gpu_->device(), reinterpret_cast<const std::uint32_t*>(residual_.data() + place.offset),
                         candidate_index_.data() + place.first_candidate, place.candidates,
                         reinterpret_cast<std::uint32_t*>(candidate_value_.data() + place.first_candidate));
  }
}

void DeviceCompressor::withdraw(DeviceUpdate& out) {
  RUMOR_CHECK(pending_count_ == out.count);
  forget_update();
  out.clear();
}

void DeviceCompressor::set_density(double density) {
  RUMOR_CHECK(density > 0 && density <= 1);
  entries_ = entries_of(density);
}

Result<std::vector<float>> DeviceCompressor::residual() {
  finish_update();
  std::vector<float> all(layout_.params());
  if (Result<void> read = residual_.read(all.data(), all.size()); !read) return read.error();
  return all;
}

const DeviceArray<float>& DeviceCompressor::residual_there() {
  finish_update();
  return residual_;
}

void DeviceCompressor::restore_residual(std::span<const float> residual) {
  RUMOR_CHECK(residual.size() == layout_.params());
  clear_residual();
  residual_.write(residual.data(), residual.size());
}

void DeviceCompressor::clear_residual() {
  forget_update();
  gpu_->table().fill(gpu_->device(), residual_.data(), 0, residual_.bytes());
  for (RankGroup& rank : ranks_) rank.forget();
}

void DeviceCompressor::set_decay(double decay) {
  RUMOR_CHECK(decay >= 0 && decay <= 1);
  if (decay == options_.residual_decay) return;
  finish_update();
  options_.residual_decay = decay;
}

Result<compress::CompressorStats> DeviceCompressor::stats(const DeviceUpdate& last) {
  const Result<std::vector<float>> all = residual();
  if (!all) return all.error();
  std::vector<std::uint32_t> sent = last.counts;
  sent.resize(layout_.tensors().size(), 0);  // no counts: an update without entries
  return compress::compressor_stats(layout_, options_.scope, ranks_, sent, *all);
}

std::size_t DeviceCompressor::entry_bytes() const {
  return device_bytes(candidate_index_, candidate_value_, tiles_, bins_, tile_counts_, selections_, sums_, pending_) +
         left_out_.memory_bytes() + counter_.memory_bytes();
}

double DeviceCompressor::threshold() const {
  float least = 0;
  for (const RankGroup& rank : ranks_) {
    if (rank.selected == 0) continue;
    const float threshold = std::bit_cast<float>(rank.threshold);
    least = least == 0 ? threshold : std::min(least, threshold);
  }
  return least;
}

}  // namespace rumor::gpu
