#include "compress/select/scan_pass.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace rumor::compress {
namespace {

// The kernels fetch the next tile while they work on this one, so that its sent entries are in the cache.
constexpr std::uint32_t scan_tile_params = 2048;

// Nothing at zero was ever sent, so the sign says which way.
void take_sent(float& value, float step) {
  value -= std::copysign(step, value);
}

void count_candidates(Piece& piece, std::size_t from, std::uint32_t cutoff) {
  std::uint32_t largest = piece.largest;
  std::uint32_t* const bins = piece.bins.empty() ? nullptr : piece.bins.data();
  for (std::size_t c = from; c < piece.count; ++c) {
    const std::uint32_t magnitude = magnitude_bits(piece.value[c]);
    largest = std::max(largest, magnitude);
    if (bins != nullptr) ++bins[bin_of(magnitude, cutoff)];
  }
  piece.largest = largest;
}

// Gives memory back where the last pass had far fewer candidates than one before it. Its content is of no use now.
void give_back_room(Piece& piece) {
  if (piece.index.capacity() <= 2 * (piece.count + scan_tile_params + scan_slack)) return;
  piece.index = std::vector<std::uint32_t>();
  piece.value = std::vector<float>();
}

}  // namespace

void take_sent(Piece& piece, float* residual) {
  for (const std::uint32_t position : piece.pending) take_sent(residual[position], piece.pending_step);
  piece.pending.clear();
}

void make_room(Piece& piece, std::size_t more) {
  const std::size_t needed = piece.count + more + scan_slack;
  if (piece.index.size() >= needed) return;
  const std::size_t all = piece.end - piece.begin + scan_slack;
  const std::size_t room = std::max(needed, std::min(piece.index.size() * 3 / 2, all));
  piece.index.reserve(room);  // resize() alone might double it
  piece.value.reserve(room);
  piece.index.resize(room);
  piece.value.resize(room);
}

void scan_piece(const ScanKernels& kernels, const ScanInput& input, ChangeForm form, std::uint32_t cutoff, Room room,
                bool binned, Piece& piece) {
  std::atomic_ref<std::size_t> found(*room.found);
  const auto scan = kernels.scan[static_cast<std::size_t>(form)];
  give_back_room(piece);
  piece.count = 0;
  piece.largest = 0;
  piece.overflow = found.load(std::memory_order_relaxed) > room.limit;
  if (piece.overflow) cutoff = infinity_bits;  // numbers that are none must not go unseen
  piece.bins.assign(binned ? bin_count : 0, 0);
  auto pending = piece.pending.cbegin();
  for (std::uint32_t at = piece.begin; at < piece.end;) {
    const std::uint32_t end = std::min(piece.end, (at / scan_tile_params + 1) * scan_tile_params);
    for (; pending != piece.pending.cend() && *pending < end; ++pending)
      take_sent(input.residual[*pending], piece.pending_step);
    make_room(piece, end - at);
    const std::size_t from = piece.count;
    piece.count +=
        scan(input, at, end, cutoff, piece.index.data() + piece.count, piece.value.data() + piece.count);
    count_candidates(piece, from, cutoff);
    at = end;
    if (found.load(std::memory_order_relaxed) + piece.count <= room.limit) continue;
    piece.overflow = true;
    piece.count = 0;
    cutoff = infinity_bits;
  }
  found.fetch_add(piece.count, std::memory_order_relaxed);
  piece.pending.clear();
}

}  // namespace rumor::compress
