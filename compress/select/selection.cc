#include "compress/select/selection.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "compress/select/rank_group.h"
#include "runtime/base/check.h"

namespace rumor::compress {
namespace {

// Magnitude bits in [low, high) hold the threshold; `rank` of them, counted from the largest, are selected.
struct Band {
  std::uint32_t low = 0;
  std::uint32_t high = 1u << 31;
  std::size_t rank = 0;
};

bool binned(std::span<const Piece> pieces) {
  return std::none_of(pieces.begin(), pieces.end(), [](const Piece& piece) { return piece.bins.empty(); });
}

// Finds the bin that holds the selected-th largest, and leaves the count of higher bins in `above` of every piece.
// Counts from the lowest bin on: the cutoff is a guess of the threshold, so the bin is among the first.
Band find_band(std::span<Piece> pieces, std::uint32_t cutoff, std::size_t selected) {
  for (Piece& piece : pieces) piece.above = 0;
  if (!binned(pieces)) return {.low = 0, .high = 1u << 31, .rank = selected};
  std::size_t left = 0;  // candidates not in lower bins
  for (Piece& piece : pieces) left += piece.above = piece.count;
  std::uint32_t bin = 0;
  for (;; ++bin) {
    RUMOR_CHECK(bin < bin_count);
    std::size_t here = 0;
    for (Piece& piece : pieces) {
      here += piece.bins[bin];
      piece.above -= piece.bins[bin];
    }
    left -= here;
    if (left < selected) break;
  }
  const std::uint32_t low = cutoff + (bin << bin_shift);
  return {.low = low, .high = bin + 1 == bin_count ? 1u << 31 : low + (1u << bin_shift), .rank = selected - left};
}

// Writes down the candidates in the band: few of them where they were counted by magnitude.
void fill_band(const ScanKernels& kernels, const Band& band, Piece& piece) {
  constexpr std::size_t at_once = 4096;
  std::array<std::uint32_t, at_once + scan_slack> bits;
  piece.band.clear();
  for (std::size_t from = 0; from < piece.count; from += at_once) {
    const std::size_t count = std::min(at_once, piece.count - from);
    const std::size_t found = kernels.between(piece.value.data() + from, count, band.low, band.high, bits.data());
    piece.band.insert(piece.band.end(), bits.begin(), bits.begin() + static_cast<std::ptrdiff_t>(found));
  }
}

}  // namespace

void each_piece(std::span<Piece> pieces, Parallel& parallel, const std::function<void(Piece&)>& task) {
  constexpr std::size_t alone_max = 4096;
  Serial serial;
  const auto run = [&](std::size_t p) { task(pieces[p]); };
  if (count_candidates(pieces) <= alone_max)
    serial.each(pieces.size(), run);
  else
    parallel.each(pieces.size(), run);
}

std::uint32_t select(const ScanKernels& kernels, std::span<Piece> pieces, std::uint32_t cutoff,
                     std::size_t selected, Parallel& parallel) {
  const Band band = find_band(pieces, cutoff, selected);
  each_piece(pieces, parallel, [&](Piece& piece) {
    fill_band(kernels, band, piece);
  });
  std::vector<std::uint32_t> around;
  for (const Piece& piece : pieces) around.insert(around.end(), piece.band.begin(), piece.band.end());
  RUMOR_CHECK(band.rank >= 1 && band.rank <= around.size());
  const auto at = around.begin() + static_cast<std::ptrdiff_t>(band.rank - 1);
  std::nth_element(around.begin(), at, around.end(), std::greater<>());
  const std::uint32_t threshold = *at;
  std::size_t above = 0;
  for (Piece& piece : pieces) {
    piece.ties = 0;
    for (const std::uint32_t bits : piece.band) {
      piece.above += bits > threshold;
      piece.ties += bits == threshold;
    }
    piece.band = std::vector<std::uint32_t>();
    above += piece.above;
  }
  RUMOR_CHECK(above < selected);
  std::size_t ties = selected - above;
  for (Piece& piece : pieces) {
    const std::size_t taken = std::min(ties, piece.ties);
    piece.kept = piece.above + taken;
    ties -= taken;
  }
  RUMOR_CHECK(ties == 0);
  return threshold;
}

std::size_t remove_candidates(std::span<const std::uint32_t> positions, std::uint32_t cutoff, Piece& piece) {
  std::size_t left = 0;
  for (std::size_t c = 0; c < piece.count; ++c) {
    if (std::binary_search(positions.begin(), positions.end(), piece.index[c])) {
      if (!piece.bins.empty()) --piece.bins[bin_of(magnitude_bits(piece.value[c]), cutoff)];
      continue;
    }
    piece.index[left] = piece.index[c];
    piece.value[left++] = piece.value[c];
  }
  const std::size_t removed = piece.count - left;
  piece.count = left;
  return removed;
}

double selected_magnitudes(std::span<Piece> pieces, std::uint32_t threshold, Parallel& parallel) {
  each_piece(pieces, parallel, [&](Piece& piece) {
    std::size_t ties = piece.kept - piece.above;
    piece.magnitude_sum = 0;
    for (std::size_t c = 0; c < piece.count; ++c) {
      const std::uint32_t magnitude = magnitude_bits(piece.value[c]);
      if (magnitude < threshold || (magnitude == threshold && ties == 0)) continue;
      if (magnitude == threshold) --ties;
      piece.magnitude_sum += std::abs(static_cast<double>(piece.value[c]));
    }
  });
  double sum = 0;
  for (const Piece& piece : pieces) sum += piece.magnitude_sum;
  return sum;
}

void emit_piece(const ScanKernels& kernels, std::uint32_t threshold, float step, Piece& piece, SparseUpdate& out) {
  std::uint32_t* const index = out.index.data() + piece.out_from;
  std::uint8_t* const negative = out.negative.data() + piece.out_from;
  if (piece.kept == piece.above + piece.ties) {
    kernels.keep(piece.index.data(), piece.value.data(), piece.count, threshold, piece.kept, index, negative);
  } else {  // some of those at the threshold have to wait
    std::size_t ties = piece.kept - piece.above, done = 0;
    for (std::size_t c = 0; c < piece.count; ++c) {
      const std::uint32_t magnitude = magnitude_bits(piece.value[c]);
      if (magnitude < threshold || (magnitude == threshold && ties == 0)) continue;
      if (magnitude == threshold) --ties;
      index[done] = piece.index[c];
      negative[done++] = std::signbit(piece.value[c]);
    }
    RUMOR_CHECK(done == piece.kept);
  }
  piece.pending.assign(index, index + piece.kept);
  piece.pending_step = step;
}

}  // namespace rumor::compress
