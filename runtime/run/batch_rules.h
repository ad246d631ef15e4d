// BatchRules: how many rows a mini-batch has (optimizer.batch, optimizer.global_batch of a run file).
//
// With a global batch, a mini-batch of all peers together has about as many rows whatever the number of peers: each
// takes its share of them. Many peers then make many small steps instead of few large ones (figures in METHODS.md).
//
// Thread: plain values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rumor {

struct BatchRules {
  std::uint32_t batch = 16;   // rows of a peer's mini-batch, at most
  std::uint32_t global = 0;   // rows of a mini-batch of all peers together; 0: each peer has `batch`

  // Rows of a mini-batch of one of `peers` live peers.
  std::uint32_t rows(std::size_t peers) const {
    if (global == 0) return batch;
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(global / std::max<std::size_t>(peers, 1), 1, batch));
  }
  // Records count what a trainer has drawn in pieces of so many rows (runtime/AUDIT.md): mini-batches, where all are
  // alike, or rows.
  std::uint32_t piece() const { return global == 0 ? batch : 1; }
  // Pieces in so many mini-batches of one of `peers` live peers.
  std::uint64_t pieces(std::size_t peers, std::uint64_t batches) const { return batches * rows(peers) / piece(); }
};

}  // namespace rumor
