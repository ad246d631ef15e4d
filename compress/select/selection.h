// Selection: the exact k-th largest magnitude among the candidates of some pieces, and the entries above it.
//
// The rank is found from the bins that the scan counted: the bin that holds it is known at once, and only the few
// candidates in that bin are ordered. Entries exactly at the threshold go by lowest position, so that it is
// never one too many.
//
// Thread: one caller; the work on pieces is spread through `parallel`. Results do not depend on its width.
#pragma once

#include <functional>
#include <span>

#include "compress/payload/update.h"
#include "compress/select/scan_pass.h"
#include "runtime/base/parallel.h"

namespace rumor::compress {

// The selected-th largest magnitude bits among all candidates of `pieces`, which were collected from `cutoff` on.
// Leaves above, ties and kept of every piece. Requires: 1 <= selected <= the number of candidates.
std::uint32_t select(const ScanKernels& kernels, std::span<Piece> pieces, std::uint32_t cutoff,
                     std::size_t selected, Parallel& parallel);

// Calls task(piece) for each. Through `parallel` where there are candidates enough: a few are done with before
// another thread has begun.
void each_piece(std::span<Piece> pieces, Parallel& parallel, const std::function<void(Piece&)>& task);

// Removes the candidates at `positions` (ascending) from a piece. Returns how many they were. `cutoff`: from which
// magnitude bits on they were collected.
std::size_t remove_candidates(std::span<const std::uint32_t> positions, std::uint32_t cutoff, Piece& piece);

// Sum of the magnitudes of the entries that select() chose. Summed by piece, in order: the same everywhere.
double selected_magnitudes(std::span<Piece> pieces, std::uint32_t threshold, Parallel& parallel);

// Writes the entries of one piece to where piece.out_from points in `out`, which has room for them, and notes them
// as pending with `step`.
void emit_piece(const ScanKernels& kernels, std::uint32_t threshold, float step, Piece& piece, SparseUpdate& out);

}  // namespace rumor::compress
