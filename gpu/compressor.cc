#include "gpu/compressor.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "runtime/base/check.h"

namespace rumor::gpu {

using compress::Emit;
using compress::RankGroup;

namespace {

// What rounds to less than one grid unit can never be sent: half a unit, as magnitude bits.
std::uint32_t floor_bits(int grid_bits) {
  return compress::magnitude_bits(std::ldexp(1.0f, -grid_bits - 1));
}

}  // namespace

Result<DeviceCompressor> DeviceCompressor::create(const Gpu& gpu, const ParamLayout& layout,
                                                  compress::CompressorOptions options) {
  RUMOR_CHECK(options.density > 0 && options.density <= 1);
  RUMOR_CHECK(options.grid_bits >= 0 && options.grid_bits <= 30);
  if (options.scope != compress::Scope::global)
    return Error{Errc::usage, "compress.scope = \"tensor\" is not possible on a GPU yet; use \"global\""};
  DeviceCompressor made(gpu, layout, options);
  const std::uint32_t params = layout.params();
  const std::size_t tiles = params / tile_params + 1;
  made.entries_ = made.entries_of(options.density);
  made.group_.size = params;
  for (Result<void> room :
       {made.residual_.make_room(gpu, params, "the residual"), made.tiles_.make_room(gpu, tiles, "selection"),
        made.tile_counts_.make_room(gpu, 2 * tiles, "selection"), made.bins_.make_room(gpu, radix_bins, "selection"),
        made.selection_.make_room(gpu, 1, "selection")})
    if (!room) return room.error();
  Result<TensorCounter> counter = TensorCounter::create(gpu, layout);
  if (!counter) return counter.error();
  made.counter_ = std::move(*counter);
  gpu.table().fill(gpu.device(), made.residual_.data(), 0, params * sizeof(float));
  return made;
}

std::uint32_t DeviceCompressor::entries_of(double density) const {
  const double wanted = std::round(density * layout_.params());
  return static_cast<std::uint32_t>(std::clamp(wanted, 1.0, static_cast<double>(layout_.params())));
}

Result<void> DeviceCompressor::make_room(DeviceUpdate& out) {
  const std::size_t candidates = std::min<std::size_t>(group_.room(), layout_.params());
  for (Result<void> room :
       {candidate_index_.make_room(*gpu_, candidates, "candidates"),
        candidate_value_.make_room(*gpu_, candidates, "candidates"),
        pending_.make_room(*gpu_, entries_, "positions of an update"), out.make_room(*gpu_, entries_)})
    if (!room) return room;
  return {};
}

void DeviceCompressor::settle() {
  gpu_->table().settle(gpu_->device(), residual_.data(), pending_.data(), pending_count_, pending_step_);
  pending_count_ = 0;
}

Result<Selection> DeviceCompressor::select(const Source& source, DeviceUpdate& out) {
  const GpuTable& table = gpu_->table();
  const SelectScratch scratch{bins_.data(), tile_counts_.data()};
  table.select(gpu_->device(), &source, group_.wanted, floor_bits(options_.grid_bits), scratch, selection_.data());
  table.emit(gpu_->device(), &source, scratch, selection_.data(), out.index.data(), out.negative.data());
  Selection selection{};
  if (Result<void> read = selection_.read(&selection, 1); !read) return read.error();
  return selection;
}

// Added as Compressor adds them: by piece of compress/scan_pass.h, then in their order.
Result<float> DeviceCompressor::mean_magnitude(const DeviceUpdate& update) {
  constexpr auto piece_shift = static_cast<std::uint32_t>(std::countr_zero(compress::piece_params));
  const std::uint32_t pieces = (layout_.params() - 1) / compress::piece_params + 1;
  if (Result<void> room = sums_.make_room(*gpu_, pieces, "sums"); !room) return room.error();
  gpu_->table().sum_magnitudes(gpu_->device(), residual_.data(), update.index.data(), update.count, piece_shift, pieces,
                               sums_.data());
  std::vector<double> sums(pieces);
  if (Result<void> read = sums_.read(sums.data(), pieces); !read) return read.error();
  double sum = 0;
  for (const double of_piece : sums) sum += of_piece;
  return static_cast<float>(sum / static_cast<double>(update.count));
}

// The entries are there; what they are worth, how many are in each tensor, and what leaves the residual.
Result<void> DeviceCompressor::choose(const ScanArgs& args, DeviceUpdate& out) {
  const GpuTable& table = gpu_->table();
  const std::uint32_t least = floor_bits(options_.grid_bits);
  Source source{candidate_value_.data(), candidate_index_.data(), tiles_.data(), args.params, args.room};
  Result<Selection> selection = select(source, out);
  if (!selection) return selection.error();
  if (selection->first_not_finite != no_position) return compress::not_finite_at(layout_, selection->first_not_finite);
  const std::uint32_t found = selection->candidates;
  if (group_.threshold != 0) group_.margin.adapt(std::min<std::size_t>(found, args.room), group_.wanted);
  if (found > args.room || (found < group_.wanted && args.cutoff > least)) {
    ++second_looks_;
    source = {residual_.data(), nullptr, nullptr, args.params, 0};
    selection = select(source, out);
    if (!selection) return selection.error();
  }
  group_.selected = out.count = selection->selected;
  if (out.count == 0) return out.set_steps(*gpu_);
  group_.threshold = selection->threshold;
  float worth = std::bit_cast<float>(group_.threshold);
  if (options_.emit == Emit::mean) {
    const Result<float> mean = mean_magnitude(out);
    if (!mean) return mean.error();
    worth = *mean;
  }
  if (Result<void> step = group_.set_step(worth, options_.grid_bits); !step) return step;
  out.step = group_.step_units;
  if (Result<void> counted = counter_.count(out); !counted) return counted;
  table.copy_within(gpu_->device(), pending_.data(), out.index.data(), out.count * sizeof(std::uint32_t));
  pending_count_ = out.count;
  pending_step_ = group_.step;
  return out.set_steps(*gpu_);
}

Result<void> DeviceCompressor::absorb(ScanArgs args, DeviceUpdate& out) {
  out.clear();
  group_.wanted = entries_;
  group_.selected = 0;
  settle();  // first: more room for what is pending forgets what is
  if (Result<void> room = make_room(out); !room) return room;
  const std::uint32_t least = floor_bits(options_.grid_bits);
  group_.cutoff = group_.share_of_threshold(group_.margin.share(), least);
  args.residual = residual_.data();
  args.params = layout_.params();
  args.cutoff = group_.cutoff;
  args.index = candidate_index_.data();
  args.value = candidate_value_.data();
  args.room = static_cast<std::uint32_t>(std::min<std::size_t>(group_.room(), layout_.params()));
  args.tiles = tiles_.data();
  args.selection = selection_.data();
  gpu_->table().scan(gpu_->device(), &args);
  Result<void> chosen = choose(args, out);
  if (!chosen) {
    out.clear();
    group_.selected = 0;
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

void DeviceCompressor::withdraw(DeviceUpdate& out) {
  RUMOR_CHECK(pending_count_ == out.count);
  pending_count_ = 0;
  out.clear();
}

void DeviceCompressor::set_density(double density) {
  RUMOR_CHECK(density > 0 && density <= 1);
  entries_ = entries_of(density);
}

Result<std::vector<float>> DeviceCompressor::residual() {
  settle();
  std::vector<float> all(layout_.params());
  if (Result<void> read = residual_.read(all.data(), all.size()); !read) return read.error();
  return all;
}

void DeviceCompressor::restore_residual(std::span<const float> residual) {
  RUMOR_CHECK(residual.size() == layout_.params());
  pending_count_ = 0;
  residual_.write(residual.data(), residual.size());
  group_.forget();
}

double DeviceCompressor::threshold() const {
  return std::bit_cast<float>(group_.threshold);
}

}  // namespace rumor::gpu
