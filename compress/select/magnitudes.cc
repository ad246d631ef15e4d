#include "compress/select/magnitudes.h"

#include <algorithm>
#include <vector>

#include "runtime/base/check.h"

namespace rumor::compress {
namespace {

// Magnitudes are counted by their high bits, then by the low bits of those that share the high ones.
constexpr unsigned low_bin_bits = 16;
constexpr std::uint32_t high_bins = 1u << (31 - low_bin_bits), low_bins = 1u << low_bin_bits;

// Counts the values in each bin. bin_of(magnitude bits): less than `bins`, or `bins` for values that do not count.
template <typename BinOf>
std::vector<std::uint32_t> histogram(const float* residual, std::span<const Piece> pieces, std::uint32_t bins,
                                     Parallel& parallel, const BinOf& bin_of) {
  const std::size_t shares = std::min<std::size_t>(std::max(parallel.width(), 1u), pieces.size());
  std::vector<std::vector<std::uint32_t>> counts(shares, std::vector<std::uint32_t>(bins + 1, 0));
  parallel.each(shares, [&](std::size_t share) {
    std::vector<std::uint32_t>& own = counts[share];
    for (std::size_t p = pieces.size() * share / shares; p < pieces.size() * (share + 1) / shares; ++p)
      for (std::uint32_t i = pieces[p].begin; i < pieces[p].end; ++i)
        ++own[bin_of(magnitude_bits(residual[i]))];
  });
  for (std::size_t share = 1; share < shares; ++share)
    for (std::uint32_t bin = 0; bin < bins; ++bin) counts[0][bin] += counts[share][bin];
  counts[0].resize(bins);
  return std::move(counts[0]);
}

struct BinRank {
  std::uint32_t bin = 0;
  std::uint32_t rank = 0;  // within the bin, from 1, up to the number of values
};

// The bin of the rank-th largest, counted from 1; the lowest bin if there are fewer values.
BinRank find(const std::vector<std::uint32_t>& counts, std::uint32_t rank) {
  auto bin = static_cast<std::uint32_t>(counts.size());
  for (;;) {
    --bin;
    if (rank <= counts[bin] || bin == 0) return {bin, rank};
    rank -= counts[bin];
  }
}

BinRank find_high(const float* residual, std::span<const Piece> pieces, std::uint32_t wanted,
                  Parallel& parallel) {
  return find(histogram(residual, pieces, high_bins, parallel, [](std::uint32_t m) { return m >> low_bin_bits; }),
              wanted);
}

std::size_t count_equal(const float* residual, std::uint32_t threshold, const Piece& piece) {
  return static_cast<std::size_t>(
      std::count_if(residual + piece.begin, residual + piece.end,
                    [=](float value) { return magnitude_bits(value) == threshold; }));
}

// Those above the threshold, and as many of those at it, from the lowest position on.
void write_down(const float* residual, std::uint32_t threshold, std::size_t equal, Piece& piece) {
  piece.count = 0;
  piece.largest = 0;
  piece.overflow = false;
  piece.bins.clear();
  for (std::uint32_t i = piece.begin; i < piece.end; ++i) {
    const std::uint32_t magnitude = magnitude_bits(residual[i]);
    if (magnitude < threshold || (magnitude == threshold && equal == 0)) continue;
    if (magnitude == threshold) --equal;
    make_room(piece, 1);
    piece.index[piece.count] = i;
    piece.value[piece.count++] = residual[i];
    piece.largest = std::max(piece.largest, magnitude);
  }
}

}  // namespace

std::uint32_t cutoff_by_histogram(const float* residual, std::span<const Piece> pieces, std::uint32_t wanted,
                                  Parallel& parallel) {
  return find_high(residual, pieces, wanted, parallel).bin << low_bin_bits;
}

std::uint32_t collect_largest(const float* residual, std::span<Piece> pieces, std::uint32_t wanted,
                              Parallel& parallel) {
  const BinRank high = find_high(residual, pieces, wanted, parallel);
  const auto low_bin = [&](std::uint32_t m) { return m >> low_bin_bits == high.bin ? m % low_bins : low_bins; };
  const BinRank low = find(histogram(residual, pieces, low_bins, parallel, low_bin), high.rank);
  const std::uint32_t threshold = high.bin << low_bin_bits | low.bin;
  parallel.each(pieces.size(),
                [&](std::size_t p) { pieces[p].ties = count_equal(residual, threshold, pieces[p]); });
  std::size_t equal = low.rank;
  for (Piece& piece : pieces) {
    piece.ties = std::min(piece.ties, equal);
    equal -= piece.ties;
  }
  RUMOR_CHECK(equal == 0);
  parallel.each(pieces.size(),
                [&](std::size_t p) { write_down(residual, threshold, pieces[p].ties, pieces[p]); });
  return threshold;
}

}  // namespace rumor::compress
