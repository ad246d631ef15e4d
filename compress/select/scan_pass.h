// ScanPass: one pass of the change into a piece of the residual, and the candidates it leaves behind.
//
// The residual is cut into pieces of piece_params, whatever the number of threads; a piece is the unit of work. Within
// a piece the pass goes tile by tile: entries that the last update sent leave the residual, the change is added, and
// candidates are written down with their values and counted by magnitude. So the vectors go through the processor once,
// and choosing among the candidates needs neither the vectors nor a sort.
//
// Thread: different pieces on different threads. Memory: 8 bytes a candidate, 4 an entry sent, 8 KiB of bins for
// a piece of full size.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "compress/select/scan_kernels.h"

namespace rumor::compress {

inline constexpr std::uint32_t piece_params = 1u << 18;
inline constexpr std::uint32_t magnitude_mask = 0x7fff'ffff;
inline constexpr std::uint32_t infinity_bits = 0x7f80'0000;

inline std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & magnitude_mask;
}

struct Piece {
  std::uint32_t begin = 0, end = 0;  // positions in the flat vector
  std::uint32_t group = 0;           // which rank it belongs to (compressor.cc)

  // Positions whose entry has been sent but has not left the residual yet; it does when the next pass comes by.
  std::vector<std::uint32_t> pending;
  float pending_step = 0;

  // Candidates: the first `count` of index and value, ascending.
  std::vector<std::uint32_t> index;
  std::vector<float> value;
  std::size_t count = 0;
  std::uint32_t largest = 0;        // magnitude bits of the largest candidate, found or dropped
  bool overflow = false;            // more than the limit: they were dropped
  std::vector<std::uint32_t> bins;  // candidates by magnitude, see bin_of; empty: not counted

  // State of the selection in progress.
  std::vector<std::uint32_t> band;     // magnitude bits around the threshold; let go once that is known
  std::size_t above = 0, ties = 0;     // candidates over the threshold, and exactly at it
  std::size_t kept = 0, out_from = 0;  // entries of this piece in the update, and where they begin
  double magnitude_sum = 0;
};

// Candidates are counted in bins of 2^bin_shift magnitude bits, a tenth of a percent, from the cutoff on; the
// last bin takes all beyond.
inline constexpr unsigned bin_shift = 13;
inline constexpr std::uint32_t bin_count = 2048;
inline constexpr std::uint32_t binned_entries_min = 1024;  // in the update

inline std::uint32_t bin_of(std::uint32_t magnitude, std::uint32_t cutoff) {
  const std::uint32_t bin = (magnitude - cutoff) >> bin_shift;
  return bin < bin_count ? bin : bin_count - 1;
}

// Entries that were sent leave the residual, all that still wait.
void take_sent(Piece& piece, float* residual);

// Room for the candidates of all pieces that are ranked together, so that their memory is bounded. The threads together
// exceed it by a piece each at most.
struct Room {
  std::size_t limit = 0;
  std::size_t* found = nullptr;  // by pieces that are through: zero at first, shared by the threads
};

// Removes sent entries, adds the change, and collects values with magnitude bits >= cutoff. If it finds more than fit,
// alone or with the pieces that are done, it drops its candidates, reports it, and continues with the addition. Whether
// any piece of a rank does so, or the sum of their counts is beyond the limit, depends on the numbers alone; which
// piece it is depends on the threads. `binned`: count the candidates by magnitude, which pays if there are thousands.
void scan_piece(const ScanKernels& kernels, const ScanInput& input, ChangeForm form, std::uint32_t cutoff, Room room,
                bool binned, Piece& piece);

// Makes room in index and value for `more` candidates, and for the excess that kernels write.
void make_room(Piece& piece, std::size_t more);

}  // namespace rumor::compress
