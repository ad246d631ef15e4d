// Selection by exact rank, in one pass over the parameters where the last threshold is a good guess of the
// next.
#include "compress/compressor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "compress/scan_kernels.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::compress {
namespace {

constexpr std::uint32_t magnitude_mask = 0x7fff'ffff;
constexpr std::uint32_t infinity_bits = 0x7f80'0000;

std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & magnitude_mask;
}

// Candidates are those above this share of the last threshold. Residuals pile up just below it, so the share
// is adapted until the candidates are a small multiple of the k wanted: few to look at, and rarely too few.
struct Margin {
  double share = 0.95;

  void adapt(std::size_t candidates, std::size_t wanted) {
    if (candidates < wanted)
      widen(2.0);
    else if (candidates < wanted + wanted * 3 / 5)
      widen(1.4);
    else if (candidates > 3 * wanted)
      widen(0.85);
  }

 private:
  void widen(double factor) { share = 1 - std::clamp((1 - share) * factor, 0.002, 0.6); }
};

}  // namespace

struct Compressor::Impl {
  const ParamLayout layout;
  CompressorOptions options;
  std::vector<float> residual;
  std::vector<std::uint32_t> candidates;  // positions, ascending
  std::vector<std::uint32_t> magnitudes;  // scratch: bits of the candidates, reordered by selection
  std::vector<std::uint32_t> sent_by_tensor;
  std::uint32_t last_threshold = 0;  // magnitude bits; 0 when unknown
  Margin margin;
  double threshold = 0;
  double step = 0;

  Impl(const ParamLayout& the_layout, CompressorOptions the_options)
      : layout(the_layout), options(the_options) {
    residual.assign(layout.params(), 0.0f);
    sent_by_tensor.assign(layout.tensors().size(), 0);
  }

  // What rounds to less than one grid unit can never be sent: half a unit, as magnitude bits.
  std::uint32_t floor_bits() const { return magnitude_bits(std::ldexp(1.0f, -options.grid_bits - 1)); }

  Result<void> absorb(std::span<const float> delta, SparseUpdate& out);
  std::uint32_t target() const;
  void gather(std::span<const float> delta, std::uint32_t wanted);
  void gather_by_histogram(std::uint32_t wanted);
  Result<void> check_finite() const;
  std::uint32_t kth_magnitude(std::uint32_t wanted);
  float worth(std::uint32_t threshold_bits, std::uint32_t selected) const;
  void keep_selected(std::uint32_t threshold_bits, std::uint32_t selected);
  void emit(float step_value, SparseUpdate& out);
};

std::uint32_t Compressor::Impl::target() const {
  const double wanted = std::round(options.density * layout.params());
  return static_cast<std::uint32_t>(std::clamp(wanted, 1.0, static_cast<double>(layout.params())));
}

// Adds delta and leaves in `candidates` every position that may be among the `wanted` largest.
void Compressor::Impl::gather(std::span<const float> delta, std::uint32_t wanted) {
  const ScanKernels& kernels = scan_kernels();
  // Without a last threshold nothing is worth collecting: an infinite cutoff makes the pass a plain addition.
  const std::uint32_t guess =
      last_threshold == 0
          ? infinity_bits
          : magnitude_bits(static_cast<float>(std::bit_cast<float>(last_threshold) * margin.share));
  const std::uint32_t cutoff = std::max(guess, floor_bits());
  const std::size_t room = std::min<std::size_t>(std::size_t{6} * wanted + 1024, residual.size());
  candidates.resize(room);
  const std::size_t found = kernels.add_and_collect(residual.data(), delta.data(), residual.size(), cutoff,
                                                    candidates.data(), room);
  if (last_threshold != 0) margin.adapt(found, wanted);
  candidates.resize(std::min(found, room));
  const bool short_of = found < wanted && cutoff > floor_bits();
  if (short_of || found > room) gather_by_histogram(wanted);
}

// Without a usable guess: counts magnitudes by their upper bits (exponent and 7 bits of mantissa), which
// gives a cutoff that leaves the wanted entries and what shares the last one's bin.
void Compressor::Impl::gather_by_histogram(std::uint32_t wanted) {
  constexpr unsigned low_bits = 16;
  std::vector<std::uint32_t> histogram(std::size_t{1} << (31 - low_bits), 0);
  for (const float value : residual) ++histogram[magnitude_bits(value) >> low_bits];
  std::size_t bin = histogram.size();
  std::uint64_t above = 0;
  while (bin > 0 && above < wanted) above += histogram[--bin];
  const std::uint32_t cutoff = std::max(static_cast<std::uint32_t>(bin << low_bits), floor_bits());
  candidates.resize(static_cast<std::size_t>(above));
  const std::size_t found =
      scan_kernels().collect(residual.data(), residual.size(), cutoff, candidates.data(), above);
  RUMOR_CHECK(found <= above);
  candidates.resize(found);
}

// Infinities and NaNs are above every cutoff, so the candidates hold them if there are any.
Result<void> Compressor::Impl::check_finite() const {
  for (const std::uint32_t position : candidates) {
    if (magnitude_bits(residual[position]) < infinity_bits) continue;
    const auto after =
        std::upper_bound(layout.tensors().begin(), layout.tensors().end(), position,
                         [](std::uint32_t p, const TensorInfo& tensor) { return p < tensor.offset; });
    const TensorInfo& tensor = *std::prev(after);
    return Error{Errc::limit,
                 str("tensor ", tensor.name, " has a change that is not a finite number at position ",
                     position - tensor.offset, "; the model has diverged, try a smaller rate")};
  }
  return {};
}

std::uint32_t Compressor::Impl::kth_magnitude(std::uint32_t wanted) {
  magnitudes.clear();
  for (const std::uint32_t position : candidates) magnitudes.push_back(magnitude_bits(residual[position]));
  const auto kth = magnitudes.begin() + (wanted - 1);
  std::nth_element(magnitudes.begin(), kth, magnitudes.end(), std::greater<>());
  return *kth;
}

// Drops the candidates that are not selected. Of those exactly at the threshold the lowest positions go
// first, so that it is never more than `selected`.
void Compressor::Impl::keep_selected(std::uint32_t threshold_bits, std::uint32_t selected) {
  std::uint32_t above = 0;
  for (const std::uint32_t position : candidates)
    above += magnitude_bits(residual[position]) > threshold_bits;
  RUMOR_CHECK(above < selected);
  std::uint32_t ties = selected - above;
  std::size_t kept = 0;
  for (const std::uint32_t position : candidates) {
    const std::uint32_t bits = magnitude_bits(residual[position]);
    if (bits < threshold_bits || (bits == threshold_bits && ties == 0)) continue;
    if (bits == threshold_bits) --ties;
    candidates[kept++] = position;
  }
  RUMOR_CHECK(kept == selected);
  candidates.resize(kept);
}

// What an entry is worth before rounding. A float in any case: then its rounding to the grid is a float too,
// and leaves the residual without a rounding of its own.
float Compressor::Impl::worth(std::uint32_t threshold_bits, std::uint32_t selected) const {
  if (options.emit == Emit::threshold) return std::bit_cast<float>(threshold_bits);
  double sum = 0;
  for (const std::uint32_t position : candidates) sum += std::abs(static_cast<double>(residual[position]));
  return static_cast<float>(sum / selected);
}

void Compressor::Impl::emit(float step_value, SparseUpdate& out) {
  std::size_t tensor = 0;
  for (const std::uint32_t position : candidates) {
    const TensorInfo* info = &layout.tensors()[tensor];
    while (position - info->offset >= info->size) info = &layout.tensors()[++tensor];
    ++sent_by_tensor[tensor];
    float& kept = residual[position];
    const bool negative = kept < 0;
    kept += negative ? step_value : -step_value;
    out.index.push_back(position);
    out.negative.push_back(negative);
  }
}

Result<void> Compressor::Impl::absorb(std::span<const float> delta, SparseUpdate& out) {
  RUMOR_CHECK(delta.size() == residual.size());
  out.step = 0;
  out.index.clear();
  out.negative.clear();
  std::fill(sent_by_tensor.begin(), sent_by_tensor.end(), 0);
  threshold = 0;
  step = 0;
  const std::uint32_t wanted = target();
  gather(delta, wanted);
  if (Result<void> finite = check_finite(); !finite) return finite;
  const std::uint32_t selected = std::min(wanted, static_cast<std::uint32_t>(candidates.size()));
  if (selected == 0) return {};
  last_threshold = kth_magnitude(selected);
  keep_selected(last_threshold, selected);
  threshold = std::bit_cast<float>(last_threshold);
  const double units =
      std::round(std::ldexp(static_cast<double>(worth(last_threshold, selected)), options.grid_bits));
  if (units > std::numeric_limits<std::int32_t>::max())
    return Error{Errc::limit,
                 str("the change of the weights reached ", threshold, ", beyond what the weight grid can ",
                     "hold; the model has diverged, try a smaller rate")};
  RUMOR_CHECK(units >= 1);
  out.step = static_cast<std::int32_t>(units);
  const float step_value = static_cast<float>(std::ldexp(units, -options.grid_bits));
  step = step_value;
  emit(step_value, out);
  return {};
}

Compressor::Compressor(const ParamLayout& layout, CompressorOptions options)
    : impl_(std::make_unique<Impl>(layout, options)) {
  RUMOR_CHECK(options.density > 0 && options.density <= 1);
  RUMOR_CHECK(options.grid_bits >= 0 && options.grid_bits <= 30);
}

Compressor::~Compressor() = default;

Result<void> Compressor::absorb(std::span<const float> delta, SparseUpdate& out) {
  return impl_->absorb(delta, out);
}

void Compressor::set_density(double density) {
  RUMOR_CHECK(density > 0 && density <= 1);
  impl_->options.density = density;
}

std::uint32_t Compressor::target_entries() const {
  return impl_->target();
}

std::span<const float> Compressor::residual() const {
  return impl_->residual;
}

void Compressor::restore_residual(std::span<const float> residual) {
  RUMOR_CHECK(residual.size() == impl_->residual.size());
  std::copy(residual.begin(), residual.end(), impl_->residual.begin());
  impl_->last_threshold = 0;
}

CompressorStats Compressor::stats() const {
  CompressorStats stats{.threshold = impl_->threshold, .step = impl_->step, .tensors = {}};
  stats.tensors.reserve(impl_->layout.tensors().size());
  for (std::size_t t = 0; t < impl_->layout.tensors().size(); ++t) {
    const TensorInfo& tensor = impl_->layout.tensors()[t];
    double squares = 0;
    for (const float value : residual().subspan(tensor.offset, tensor.size)) squares += double{value} * value;
    stats.tensors.push_back({impl_->sent_by_tensor[t], std::sqrt(squares / tensor.size)});
  }
  return stats;
}

}  // namespace rumor::compress
