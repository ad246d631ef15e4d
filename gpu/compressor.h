// DeviceCompressor: the Compressor of compress/compressor.h with its residual on a GPU, bit for bit.
//
// What differs is how the largest are found. A pass writes candidates down as on the CPU, but a radix selection on the
// device ranks them (gpu/cuda/select.cuh), and where the guess of the threshold was off, the same kernels rank the
// residual itself. The host reads some numbers an update and never a parameter.
//
// Scope::global only: one rank over all parameters. Changes: floats and bfloat16; step rules are not evaluated on the
// device yet.
//
// Thread: one caller at a time. Memory, device: 4 bytes a parameter, 9 an entry wanted, and 8 a candidate, of which
// there is room for six an entry and 16,384 more.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/compressor.h"
#include "compress/rank_group.h"
#include "gpu/device.h"
#include "gpu/device_update.h"

namespace rumor::gpu {

class DeviceCompressor {
 public:
  // Refers to `gpu`; options.kernels says nothing here. Errors: Errc::limit, for too little memory; Errc::usage, for
  // Scope::tensor. Requires: density and grid_bits as Compressor.
  static Result<DeviceCompressor> create(const Gpu& gpu, const ParamLayout& layout,
                                         compress::CompressorOptions options);

  // As Compressor::absorb() and absorb_bf16(), of a delta on the device. `out` gets its steps and counts, too. Errors:
  // those, and Errc::io.
  Result<void> absorb(const DeviceArray<float>& delta, DeviceUpdate& out);
  Result<void> absorb_bf16(const DeviceArray<std::uint16_t>& delta, DeviceUpdate& out);

  // Takes the update of the last absorb() back altogether. Requires: it succeeded.
  void withdraw(DeviceUpdate& out);

  void set_density(double density);
  std::uint32_t target_entries() const { return entries_; }

  // What waits, copied. What the last update sent is taken off first, so withdraw() must not follow.
  Result<std::vector<float>> residual();
  // Requires: residual.size() == layout.params().
  void restore_residual(std::span<const float> residual);

  // Passes over the residual beyond the one of each absorb(), since the beginning: guesses that were off.
  std::uint64_t second_looks() const { return second_looks_; }
  // Magnitude of the least entry of the last update, in weight units.
  double threshold() const;

 private:
  DeviceCompressor(const Gpu& gpu, const ParamLayout& layout, compress::CompressorOptions options)
      : gpu_(&gpu), layout_(layout), options_(options) {}
  std::uint32_t entries_of(double density) const;
  Result<void> make_room(DeviceUpdate& out);
  Result<void> absorb(ScanArgs args, DeviceUpdate& out);
  void settle();
  Result<Selection> select(const Source& source, DeviceUpdate& out);
  Result<void> choose(const ScanArgs& args, DeviceUpdate& out);
  Result<float> mean_magnitude(const DeviceUpdate& update);

  const Gpu* gpu_;
  ParamLayout layout_;
  compress::CompressorOptions options_;
  std::uint32_t entries_ = 1;
  compress::RankGroup group_;
  std::uint64_t second_looks_ = 0;
  DeviceArray<float> residual_;
  DeviceArray<std::uint32_t> candidate_index_;
  DeviceArray<float> candidate_value_;
  DeviceArray<Tile> tiles_;
  DeviceArray<std::uint32_t> bins_, tile_counts_;
  DeviceArray<Selection> selection_;
  DeviceArray<double> sums_;
  DeviceArray<std::uint32_t> pending_;  // sent, and still in the residual: the first pending_count_
  std::uint32_t pending_count_ = 0;
  float pending_step_ = 0;
  TensorCounter counter_;
};

}  // namespace rumor::gpu
