// Compressor: turns local change into the entries worth sending and keeps the rest (error feedback).
//
//   residual += delta;  the k largest |residual| become +-step;  they leave the residual;  the rest waits.
//
// k is exact: chosen by count, never by a feedback gain, and capped (a controller without a cap sends a dense
// message sooner or later). The step is a whole number of grid units BEFORE it leaves the residual, so that
// what the network adds to the weights and what leaves the residual are the same number. Method: Strom 2015
// (threshold quantisation with residual), with the threshold found by rank.
//
// Thread: one caller at a time. Memory: one float per parameter, allocated once, plus O(k).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compress/update.h"

namespace rumor::compress {

// What an entry is worth. threshold: the k-th largest magnitude. mean: the mean magnitude of the k selected.
enum class Emit : std::uint8_t { threshold = 0, mean = 1 };

struct CompressorOptions {
  double density = 0.001;  // entries / parameters aimed at; at least one entry
  int grid_bits = 24;      // one grid unit is 2^-grid_bits
  Emit emit = Emit::threshold;
};

// Of the last update, for people and metrics.
struct TensorStats {
  std::uint32_t entries = 0;
  double residual_rms = 0;
};
struct CompressorStats {
  double threshold = 0;  // the k-th magnitude, in weight units
  double step = 0;       // what an entry was worth
  std::vector<TensorStats> tensors;
};

class Compressor {
 public:
  // Copies the layout. Requires: density in (0, 1], grid_bits in [0, 30].
  Compressor(const ParamLayout& layout, CompressorOptions options);
  ~Compressor();

  // residual += delta, then selects, rounds, subtracts. `out` is overwritten, its capacity reused.
  // Sends exactly target_entries() entries, ties of equal magnitude going by lowest position; fewer only
  // where fewer residuals reach half a grid unit, below which an entry would be worth nothing.
  // Errors: a residual that is not finite, or an entry beyond 2^31 - 1 grid units, means a diverged model:
  // Errc::limit, naming the tensor of the former. Nothing is sent, `out` is empty, and the residual keeps
  // what was added.
  // Cost: one pass over residual and delta while the threshold moves little; two more where it jumps.
  // Requires: delta.size() == layout.params(), no overlap with residual().
  Result<void> absorb(std::span<const float> delta, SparseUpdate& out);

  // From the next update on. Requires: density in (0, 1].
  void set_density(double density);
  // Entries of an update: density * parameters, rounded, at least 1.
  std::uint32_t target_entries() const;

  // Valid until the compressor dies; changed by absorb() and restore_residual().
  std::span<const float> residual() const;
  // Requires: residual.size() == layout.params().
  void restore_residual(std::span<const float> residual);

  // Computes the per-tensor figures; O(params), so ask rarely.
  CompressorStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rumor::compress
