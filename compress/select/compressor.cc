// Selection by exact rank, in one pass over the parameters if the last threshold is a good guess of the next. The pass
// is in scan_pass.cc, the rank in selection.cc. This file has the rank groups, guesses and their correction, and the
// step.
#include "compress/select/compressor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "compress/select/compressor_stats.h"
#include "compress/select/magnitudes.h"
#include "compress/select/rank_group.h"
#include "compress/select/scan_pass.h"
#include "compress/select/selection.h"
#include "runtime/base/check.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/memory_bytes.h"

namespace rumor::compress {

struct Compressor::Impl {
  const ParamLayout layout;
  CompressorOptions options;
  const ScanKernels& kernels;
  std::uint32_t entries;  // aimed at
  Serial serial;
  Parallel* parallel = &serial;
  LargeVector<float> residual;
  std::vector<Piece> pieces;
  std::vector<RankGroup> groups;
  std::vector<std::uint32_t> sent_by_tensor;
  std::size_t unfinished = 0;  // entries of the last update, for which the residual has not faded yet

  Impl(const ParamLayout& the_layout, CompressorOptions the_options)
      : layout(the_layout),
        options(the_options),
        kernels(the_options.kernels != nullptr ? *the_options.kernels : scan_kernels()),
        entries(entries_of(the_options.density)),
        residual(layout.params()),
        sent_by_tensor(layout.tensors().size(), 0) {
    if (options.scope == Scope::global) {
      add_group(0, layout.params());
    } else {
      for (const TensorInfo& tensor : layout.tensors()) add_group(tensor.offset, tensor.size);
    }
  }

  std::uint32_t entries_of(double density) const {
    const double wanted = std::round(density * layout.params());
    return static_cast<std::uint32_t>(std::clamp(wanted, 1.0, static_cast<double>(layout.params())));
  }
  // Half a grid unit, as magnitude bits. Smaller values round to zero and can never be sent.
  std::uint32_t floor_bits() const { return magnitude_bits(std::ldexp(1.0f, -options.grid_bits - 1)); }
  std::span<Piece> pieces_of(const RankGroup& group) {
    return std::span<Piece>(pieces).subspan(group.first_piece, group.piece_count);
  }

  void add_group(std::uint32_t offset, std::uint32_t size);
  Result<void> absorb(ScanInput input, ChangeForm form, SparseUpdate& out);
  void scan(const ScanInput& input, ChangeForm form);
  void refill(RankGroup& group, RankGroup::Collected collected);
  RankGroup::Collected collect(RankGroup& group, std::uint32_t cutoff);
  Result<void> check_finite() const;
  Result<void> choose(SparseUpdate& out);
  void choose_or_clear(SparseUpdate& out);
  Result<void> choose_step(RankGroup& group);
  void emit(SparseUpdate& out);
  void clear(SparseUpdate& out);
  void finish_update();
  void forget();
};

// Takes what was sent out of the residual and lets the rest fade: once for each update, whoever asks first.
void Compressor::Impl::finish_update() {
  const float kept = residual_kept(options.residual_decay, std::exchange(unfinished, 0), layout.params());
  if (kept == 1) {
    for (Piece& piece : pieces) take_sent(piece, residual.data());
    return;
  }
  each_piece(pieces, *parallel, [&](Piece& piece) {
    take_sent(piece, residual.data());
    for (std::uint32_t i = piece.begin; i < piece.end; ++i) residual.data()[i] *= kept;
  });
}

// Forgets the candidates that were found in a residual that is about to be replaced.
void Compressor::Impl::forget() {
  unfinished = 0;
  for (Piece& piece : pieces) piece.pending.clear();
  for (RankGroup& group : groups) group.forget();
}

void Compressor::Impl::add_group(std::uint32_t offset, std::uint32_t size) {
  RankGroup group{.size = size, .first_piece = pieces.size()};
  for (std::uint32_t begin = 0; begin < size; begin += std::min(piece_params, size - begin)) {
    Piece piece;
    piece.begin = offset + begin;
    piece.end = piece.begin + std::min(piece_params, size - begin);
    piece.group = static_cast<std::uint32_t>(groups.size());
    pieces.push_back(std::move(piece));
    ++group.piece_count;
  }
  groups.push_back(group);
}

// Adds the change and leaves in every group the candidates that may be among its `wanted` largest.
void Compressor::Impl::scan(const ScanInput& input, ChangeForm form) {
  for (RankGroup& group : groups) {
    group.cutoff = group.share_of_threshold(group.margin.share(), floor_bits());
    group.found = 0;
  }
  const auto task = [&](std::size_t p) {
    RankGroup& group = groups[pieces[p].group];
    scan_piece(kernels, input, form, group.cutoff, {group.room(), &group.found}, group.binned(), pieces[p]);
  };
  if (pieces.size() == 1)
    task(0);
  else
    parallel->each(pieces.size(), task);
  for (RankGroup& group : groups) {
    const RankGroup::Collected collected = group.collected(pieces_of(group), floor_bits());
    if (group.threshold != 0 && group.wanted != 0)
      group.margin.adapt(collected == RankGroup::Collected::too_many ? group.room() : group.candidates, group.wanted,
                         group.room());
    if (collected != RankGroup::Collected::enough) refill(group, collected);
  }
}

RankGroup::Collected Compressor::Impl::collect(RankGroup& group, std::uint32_t cutoff) {
  ScanInput input;
  input.residual = residual.data();
  const std::span<Piece> own = pieces_of(group);
  group.cutoff = cutoff;
  group.found = 0;
  parallel->each(own.size(), [&](std::size_t p) {
    scan_piece(kernels, input, ChangeForm::none, cutoff, {group.room(), &group.found}, group.binned(), own[p]);
  });
  return group.collected(own, floor_bits());
}

// The guess was off: looks at the residual again. First a little lower, if that is likely to do; then from a cutoff
// that is certain to leave enough; and where that leaves too many, for exactly those that are wanted.
void Compressor::Impl::refill(RankGroup& group, RankGroup::Collected collected) {
  const std::span<Piece> own = pieces_of(group);
  for (Piece& piece : own) piece.count = 0;  // those found so far are of no use: a pass gives their memory back
  const bool near = collected == RankGroup::Collected::too_few && group.candidates >= group.wanted / 2;
  if (near && group.threshold != 0) {
    const std::uint32_t lower = group.share_of_threshold(group.margin.wider_share(), floor_bits());
    if (collect(group, lower) == RankGroup::Collected::enough) return;
  }
  std::uint32_t cutoff = floor_bits();
  if (group.size >= histogram_params_min)
    cutoff = std::max(cutoff, cutoff_by_histogram(residual.data(), own, group.wanted, *parallel));
  if (collect(group, cutoff) == RankGroup::Collected::enough) return;
  group.cutoff = collect_largest(residual.data(), own, group.wanted, *parallel);
  group.candidates = group.wanted;
}

// Infinities and NaNs are above every cutoff, so a piece that has any knows.
Result<void> Compressor::Impl::check_finite() const {
  for (const Piece& piece : pieces) {
    if (piece.largest < infinity_bits) continue;
    std::uint32_t position = piece.begin;
    while (magnitude_bits(residual.data()[position]) < infinity_bits) ++position;
    return not_finite_at(layout, position);
  }
  return {};
}

Result<void> Compressor::Impl::choose_step(RankGroup& group) {
  float worth = std::bit_cast<float>(group.threshold);
  if (options.emit == Emit::mean)
    worth = static_cast<float>(selected_magnitudes(pieces_of(group), group.threshold, *parallel) /
                               static_cast<double>(group.selected));
  return group.set_step(worth, options.grid_bits);
}

// Threshold and step of every group from its candidates.
Result<void> Compressor::Impl::choose(SparseUpdate& out) {
  for (RankGroup& group : groups) {
    const std::span<Piece> own = pieces_of(group);
    for (Piece& piece : own) piece.kept = 0;
    group.selected = std::min<std::size_t>(group.wanted, group.candidates);
    group.step_units = 0;
    group.step = 0;
    if (group.selected == 0) continue;
    group.threshold = select(kernels, own, group.cutoff, group.selected, *parallel);
    if (Result<void> step = choose_step(group); !step) return step;
  }
  emit(out);
  return {};
}

// Chooses among fewer candidates than before. Where their step is none that the grid can hold, the update stays empty,
// and nothing of the one before may leave the residual.
void Compressor::Impl::choose_or_clear(SparseUpdate& out) {
  if (choose(out)) return;
  clear(out);
  for (Piece& piece : pieces) piece.pending.clear();
}

void Compressor::Impl::emit(SparseUpdate& out) {
  std::size_t total = 0;
  for (Piece& piece : pieces) {
    piece.out_from = total;
    total += piece.kept;
  }
  unfinished = total;
  out.step = 0;
  out.tensor_step.clear();
  out.index.resize(total);  // its old content is overwritten
  out.negative.resize(total);
  each_piece(pieces, *parallel, [&](Piece& piece) {
    const RankGroup& group = groups[piece.group];
    const std::uint32_t threshold = group.selected == 0 ? infinity_bits : group.threshold;
    emit_piece(kernels, threshold, group.step, piece, out);
  });
  if (options.scope == Scope::global) {
    out.step = groups.front().step_units;
  } else if (total > 0) {
    for (const RankGroup& group : groups) out.tensor_step.push_back(group.step_units);
    normalize_steps(out);
  }
  auto from = out.index.cbegin();
  for (std::size_t t = 0; t < sent_by_tensor.size(); ++t) {
    const TensorInfo& tensor = layout.tensors()[t];
    const auto to = std::lower_bound(from, out.index.cend(), tensor.offset + tensor.size);
    sent_by_tensor[t] = static_cast<std::uint32_t>(to - from);
    from = to;
  }
}

void Compressor::Impl::clear(SparseUpdate& out) {
  unfinished = 0;
  out.step = 0;
  out.index.clear();
  out.negative.clear();
  out.tensor_step.clear();
  std::fill(sent_by_tensor.begin(), sent_by_tensor.end(), 0);
}

Result<void> Compressor::Impl::absorb(ScanInput input, ChangeForm form, SparseUpdate& out) {
  share_entries(groups, entries, layout.params());
  for (RankGroup& group : groups) {
    group.selected = 0;
    group.want_extra();
  }
  input.residual = residual.data();
  if (options.residual_decay > 0) finish_update();  // else the scan does it, in its own pass
  scan(input, form);
  Result<void> done = check_finite();
  if (done) done = choose(out);
  if (!done) {
    clear(out);
    for (RankGroup& group : groups) group.selected = 0;
  }
  return done;
}

Compressor::Compressor(const ParamLayout& layout, CompressorOptions options)
    : impl_(std::make_unique<Impl>(layout, options)) {
  RUMOR_CHECK(options.density > 0 && options.density <= 1);
  RUMOR_CHECK(options.grid_bits >= 0 && options.grid_bits <= 30);
  RUMOR_CHECK(options.residual_decay >= 0 && options.residual_decay <= 1);
}

Compressor::~Compressor() = default;

void Compressor::set_parallel(Parallel* parallel) {
  impl_->parallel = parallel != nullptr ? parallel : &impl_->serial;
}

Result<void> Compressor::absorb(std::span<const float> delta, SparseUpdate& out) {
  RUMOR_CHECK(delta.size() == impl_->residual.size());
  ScanInput input;
  input.change = delta.data();
  return impl_->absorb(input, ChangeForm::floats, out);
}

Result<void> Compressor::absorb_bf16(std::span<const std::uint16_t> delta, SparseUpdate& out) {
  RUMOR_CHECK(delta.size() == impl_->residual.size());
  ScanInput input;
  input.bf16 = delta.data();
  return impl_->absorb(input, ChangeForm::bf16, out);
}

Result<void> Compressor::absorb_step(const StepRule& rule, std::span<const float> gradient, SparseUpdate& out) {
  RUMOR_CHECK(gradient.size() == impl_->residual.size());
  ScanInput input;
  input.change = gradient.data();
  input.rule = rule;
  switch (rule.kind) {
    case StepRule::Kind::sgd: return impl_->absorb(input, ChangeForm::sgd, out);
    case StepRule::Kind::momentum: return impl_->absorb(input, ChangeForm::momentum, out);
    case StepRule::Kind::rmsprop: return impl_->absorb(input, ChangeForm::rmsprop, out);
    case StepRule::Kind::adam: return impl_->absorb(input, ChangeForm::adam, out);
    case StepRule::Kind::adamw: return impl_->absorb(input, ChangeForm::adamw, out);
    case StepRule::Kind::nadamw: return impl_->absorb(input, ChangeForm::nadamw, out);
    case StepRule::Kind::adaptive_revision: return impl_->absorb(input, ChangeForm::adaptive_revision, out);
  }
  RUMOR_CHECK(false);
  return {};
}

Result<void> Compressor::absorb_nothing(SparseUpdate& out) { return impl_->absorb({}, ChangeForm::none, out); }

void Compressor::add(std::span<const std::uint32_t> index, std::span<const float> change) {
  RUMOR_CHECK(index.size() == change.size());
  impl_->finish_update();
  for (std::size_t e = 0; e < index.size(); ++e) {
    RUMOR_CHECK(index[e] < impl_->residual.size());
    impl_->residual.data()[index[e]] += change[e];
  }
}

void Compressor::shrink(std::uint32_t entries, SparseUpdate& out) {
  std::uint64_t sent = 0;
  for (const RankGroup& group : impl_->groups) sent += group.selected;
  RUMOR_CHECK(entries >= 1 && entries <= sent);
  for (RankGroup& group : impl_->groups)
    group.wanted = static_cast<std::uint32_t>(group.selected * entries / sent);
  // Fewer of the same candidates are a larger threshold, and a mean of larger ones: on the grid once, on it still,
  // unless the mean of the largest leaves it where that of all did not.
  impl_->choose_or_clear(out);
}

void Compressor::leave_out(std::span<const std::uint32_t> positions, SparseUpdate& out) {
  for (Piece& piece : impl_->pieces) {
    RankGroup& group = impl_->groups[piece.group];
    const auto removed = static_cast<std::uint32_t>(remove_candidates(positions, group.cutoff, piece));
    group.candidates -= removed;
    group.leave_out(removed);
  }
  impl_->choose_or_clear(out);
}

void Compressor::withdraw(SparseUpdate& out) {
  for (RankGroup& group : impl_->groups) group.wanted = 0;
  impl_->clear(out);
  RUMOR_CHECK(impl_->choose(out).ok());  // of nothing
}

void Compressor::set_density(double density) {
  RUMOR_CHECK(density > 0 && density <= 1);
  impl_->entries = impl_->entries_of(density);
}

void Compressor::set_entries(std::uint32_t entries) {
  RUMOR_CHECK(entries >= 1 && entries <= impl_->layout.params());
  impl_->entries = entries;
}

void Compressor::set_decay(double decay) {
  RUMOR_CHECK(decay >= 0 && decay <= 1);
  if (decay == impl_->options.residual_decay) return;
  impl_->finish_update();
  impl_->options.residual_decay = decay;
}

std::uint32_t Compressor::target_entries() const {
  return impl_->entries;
}

std::span<const float> Compressor::residual() const {
  impl_->finish_update();
  return impl_->residual;
}

void Compressor::restore_residual(std::span<const float> residual) {
  RUMOR_CHECK(residual.size() == impl_->residual.size());
  impl_->forget();
  std::copy(residual.begin(), residual.end(), impl_->residual.data());
}

void Compressor::clear_residual() {
  impl_->forget();
  std::fill(impl_->residual.begin(), impl_->residual.end(), 0.0f);
}

std::vector<Compressor::Carried> Compressor::carried() const {
  std::vector<Carried> all;
  for (const RankGroup& group : impl_->groups) all.push_back({group.owed, group.left_out});
  return all;
}

bool Compressor::restore_carried(std::span<const Carried> carried) {
  std::vector<RankGroup>& groups = impl_->groups;
  if (carried.size() != groups.size()) return false;
  // A share is missed by a few entries at most. The bound is far beyond that, and keeps share_entries() short.
  const auto most = static_cast<std::int64_t>((1024 + groups.size()) * impl_->layout.params());
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (carried[g].owed < -most || carried[g].owed > most || carried[g].left_out > groups[g].size) return false;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    groups[g].owed = carried[g].owed;
    groups[g].left_out = carried[g].left_out;
  }
  return true;
}

std::size_t Compressor::residual_bytes() const { return capacity_bytes(impl_->residual); }

std::size_t Compressor::entry_bytes() const {
  std::size_t bytes = capacity_bytes(impl_->pieces);
  for (const Piece& piece : impl_->pieces)
    bytes += capacity_bytes(piece.pending, piece.index, piece.value, piece.bins, piece.band);
  return bytes;
}

CompressorStats Compressor::stats() const {
  return compressor_stats(impl_->layout, impl_->options.scope, impl_->groups, impl_->sent_by_tensor, residual());
}

}  // namespace rumor::compress
