// Compressor: turns local change into the entries worth sending and keeps the rest (error feedback).
//
//   residual += change;  the k largest |residual| become +-step;  they leave the residual;  the rest stays.
//
// k is exact: chosen by count, never by a feedback gain, and capped (a controller without a cap sends a dense message
// sooner or later). The step is a whole number of grid units BEFORE it leaves the residual. So the network adds to the
// weights the same number that leaves the residual. Method: Strom 2015 (threshold quantisation with residual), with the
// threshold found by rank.
//
// Memory bandwidth limits the speed: one pass reads the change and the residual and writes the residual, once. The last
// threshold, less a margin, is a good guess of the next, so the pass itself collects the candidates. Selected entries
// leave the residual in the next pass, while the numbers are in the cache anyway, or when residual() is called. Only a
// jump of the threshold costs two more passes.
//
// Bits: the same on every processor, with any number of threads.
// Thread: one caller at a time; work is spread through set_parallel(). Memory: one float per parameter,
// allocated once, plus O(k).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compress/payload/update.h"
#include "runtime/base/parallel.h"
#include "runtime/base/step_rule.h"

namespace rumor::compress {

struct ScanKernels;

// The size of an entry. threshold: the k-th largest magnitude. mean: the mean magnitude of the k selected.
enum class Emit : std::uint8_t { threshold = 0, mean = 1 };

// The parameters that are ranked together. global: all parameters, one step. tensor: each tensor by itself, with a
// step of its own and a share of the entries by its size. The fractional share of a small tensor adds up over updates.
enum class Scope : std::uint8_t { global = 0, tensor = 1 };

struct CompressorOptions {
  double density = 0.001;  // entries / parameters aimed at; at least one entry
  int grid_bits = 24;      // one grid unit is 2^-grid_bits
  Emit emit = Emit::threshold;
  Scope scope = Scope::global;
  // Share of the residual that fades while as many entries are sent as there are parameters: after an update of k
  // entries, all that stays is multiplied by 1 - residual_decay * k / parameters. 0: nothing fades.
  double residual_decay = 0;
  const ScanKernels* kernels = nullptr;  // null: the fastest of this processor
};

// The factor of what stays in a residual, after an update of so many entries of `params` parameters.
inline float residual_kept(double residual_decay, std::size_t entries, std::uint32_t params) {
  return static_cast<float>(1 - residual_decay * static_cast<double>(entries) / params);
}

// Figures of the last update, for people and metrics.
struct TensorStats {
  std::uint32_t entries = 0;
  double threshold = 0;  // the least magnitude that was sent, in weight units; 0 where nothing was
  double step = 0;       // what an entry was worth
  double residual_rms = 0;
  double residual_sum = 0;  // of magnitudes
};
struct CompressorStats {
  double threshold = 0;  // the k-th magnitude, in weight units; Scope::tensor: the least of all tensors
  double step = 0;       // what an entry was worth; Scope::tensor: the mean over entries
  std::vector<TensorStats> tensors;
};

class Compressor {
 public:
  // Copies the layout. Requires: density in (0, 1], grid_bits in [0, 30], residual_decay in [0, 1].
  Compressor(const ParamLayout& layout, CompressorOptions options);
  ~Compressor();

  // Work on several threads from now on; null: on the caller's. Must outlive its use.
  void set_parallel(Parallel* parallel);

  // residual += delta, then selects, rounds, subtracts. `out` is overwritten, its capacity reused.
  // Sends exactly target_entries() entries; among equal magnitudes the lowest positions win. Sends fewer only if fewer
  // residuals reach half a grid unit, below which an entry rounds to zero.
  // Errors: a residual that is not finite, or an entry beyond 2^31 - 1 grid units, means a diverged model:
  // Errc::limit, naming the tensor of the former. Nothing is sent, `out` is empty, and the residual keeps the added
  // change.
  // Requires: delta.size() == layout.params(), no overlap with residual().
  Result<void> absorb(std::span<const float> delta, SparseUpdate& out);
  // The same for a delta in bfloat16 (the upper half of a float): the bits of absorb() after conversion.
  Result<void> absorb_bf16(std::span<const std::uint16_t> delta, SparseUpdate& out);
  // The same without a change: for an update from the residual alone.
  Result<void> absorb_nothing(SparseUpdate& out);
  // The same for the change that `rule` makes from `gradient`, computed in the same pass: the bits of the optimizer's
  // step followed by absorb(), without the delta going through memory. Writes the moments in `rule`.
  // Requires: gradient and the moments of layout.params() floats, none overlapping another.
  Result<void> absorb_step(const StepRule& rule, std::span<const float> gradient, SparseUpdate& out);

  // residual[index[e]] += change[e], for changes of few parameters; they count from the next absorb() on. It first
  // finishes the last update, as residual() does, so shrink() and withdraw() must not follow before the next absorb().
  void add(std::span<const std::uint32_t> index, std::span<const float> change);

  // Takes the update of the last absorb() back and sends only its `entries` largest instead (Scope::tensor: that
  // share of every tensor, rounded down): for an update whose payload turned out too large. Cheap: no pass.
  // Requires: the last absorb() succeeded, and 1 <= entries <= the number it sent.
  void shrink(std::uint32_t entries, SparseUpdate& out);

  // Takes the update of the last absorb() back altogether: all of it is in the residual again. `out` is empty.
  // Requires: the last absorb() succeeded.
  void withdraw(SparseUpdate& out);

  // Chooses the update of the last absorb() or shrink() again, without these positions: they stay in the residual, and
  // the next largest of the candidates take their places. Cheap: no pass. `out` is empty if no step is left that the
  // grid can hold. Requires: that call succeeded; positions ascending.
  void leave_out(std::span<const std::uint32_t> positions, SparseUpdate& out);

  // From the next update on. Requires: density in (0, 1].
  void set_density(double density);
  // The same as a count. Requires: 1 <= entries <= layout.params().
  void set_entries(std::uint32_t entries);
  // CompressorOptions::residual_decay from the next update on. Requires: decay in [0, 1].
  void set_decay(double decay);
  // Entries of an update: density * parameters, rounded, at least 1.
  std::uint32_t target_entries() const;

  // The changes not sent yet. Call it again after each absorb(): it first finishes the last update. The entries that
  // were sent leave the residual, in O(k), and the rest fades, in O(params) where there is a decay.
  std::span<const float> residual() const;
  // Requires: residual.size() == layout.params().
  void restore_residual(std::span<const float> residual);
  // Empties the residual, as restore_residual() of zeros.
  void clear_residual();

  // Rank groups carry this to the next absorb() besides the residual. A compressor that takes over both goes on with
  // the same bits.
  struct Carried {
    std::int64_t owed = 0;       // entries times parameters that the group has missed so far
    std::uint32_t left_out = 0;  // entries that leave_out() kept back last
  };
  std::vector<Carried> carried() const;  // of each group, in the order of positions
  // False: no compressor of this layout and scope carries that; nothing changed then.
  bool restore_carried(std::span<const Carried> carried);

  // Memory of the residual; memory of the candidates and of the entries that have not left it yet.
  std::size_t residual_bytes() const;
  std::size_t entry_bytes() const;

  // Computes the per-tensor figures; O(params), so ask rarely.
  CompressorStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rumor::compress
