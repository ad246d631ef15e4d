// DeviceCompressor: the Compressor of compress/select/compressor.h with its residual on a GPU, equal to it bit for bit.
//
// Only the search for the largest values differs. One pass writes the candidates, as on the CPU, but a radix selection
// on the device ranks them (gpu/cuda/select.cuh). If the guess of the threshold was off, the same kernels rank the
// residual itself. The host reads some numbers per update and never a parameter.
//
// Scope::tensor ranks each tensor by itself, one after another on the device. This takes a dozen kernels per tensor,
// and starting each kernel takes some microseconds. As for Scope::global, all kernels are started before the host
// waits, once.
//
// leave_out() is that of the CPU too, unless the guess was off in the same update. The CPU then has few candidates more
// than it sends, perhaps too few to take all places. The GPU chooses among all parameters.
//
// Thread: one caller at a time. Memory, device: 4 bytes per parameter, 9 per wanted entry, and 8 per candidate. There
// is room for six candidates per entry plus 16,384 per rank, but never for more than there are parameters. 12 more per
// entry that was left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/select/compressor.h"
#include "compress/select/rank_group.h"
#include "gpu/compress/hidden_values.h"
#include "gpu/device/device.h"
#include "gpu/device/device_update.h"

namespace rumor::gpu {

class DeviceCompressor {
 public:
  // Refers to `gpu`; options.kernels is ignored. Errors: Errc::limit, for too little memory. Requires: density and
  // grid_bits as Compressor.
  static Result<DeviceCompressor> create(const Gpu& gpu, const ParamLayout& layout,
                                         compress::CompressorOptions options);

  // As Compressor::absorb() and absorb_bf16(), of a delta on the device. Also sets the steps and counts of `out`.
  // Errors: as those functions, and Errc::io.
  Result<void> absorb(const DeviceArray<float>& delta, DeviceUpdate& out);
  Result<void> absorb_bf16(const DeviceArray<std::uint16_t>& delta, DeviceUpdate& out);

  // As Compressor::absorb_step(): the pass includes the optimizer's step. Gradient, moments and weights are on the
  // device. Requires: `rule` as Optimizer::begin_step() returns it, with pointers to device memory instead.
  Result<void> absorb_step(const StepRule& rule, const DeviceArray<float>& gradient, DeviceUpdate& out);

  // residual[index[e]] += change[e] for the first `count`, as Compressor::add(); each index occurs once at most. The
  // call first removes what the last update sent, so shrink() and withdraw() must not follow before the next absorb().
  // Requires: each index is below layout.params(); the device does not check this.
  void add(const DeviceArray<std::uint32_t>& index, const DeviceArray<float>& change, std::uint32_t count);

  // Takes back the update of the last absorb() and sends only its `entries` largest, as Compressor::shrink(). Errors:
  // Errc::io. Requires: the last absorb() succeeded, 1 <= entries <= what it sent.
  Result<void> shrink(std::uint32_t entries, DeviceUpdate& out);

  // Chooses the update again without these positions, as Compressor::leave_out(): they stay in the residual to the last
  // bit, and the next largest take their places. Errors: Errc::io, Errc::limit. Requires: the last absorb(), shrink()
  // or leave_out() succeeded and sent these positions; they ascend.
  Result<void> leave_out(std::span<const std::uint32_t> positions, DeviceUpdate& out);

  // Takes back the whole update of the last absorb(). Requires: that absorb() succeeded.
  void withdraw(DeviceUpdate& out);

  void set_density(double density);
  // As Compressor::set_decay().
  void set_decay(double decay);
  std::uint32_t target_entries() const { return entries_; }

  // Copies the residual. It first removes what the last update sent, so shrink() and withdraw() must not follow.
  Result<std::vector<float>> residual();
  // The same without the copy: valid until the next call of any member.
  const DeviceArray<float>& residual_there();
  // Requires: residual.size() == layout.params().
  void restore_residual(std::span<const float> residual);
  // As Compressor::clear_residual(), a fill on the device.
  void clear_residual();

  // As Compressor::stats(), of the update that the last absorb() or shrink() made; reads the whole residual. The call
  // first removes what was sent, so shrink() and withdraw() must not follow. Errors: Errc::io.
  Result<compress::CompressorStats> stats(const DeviceUpdate& last);

  // Passes over the residual beyond one per absorb(), since the beginning: each is a threshold guess that was off.
  std::uint64_t second_looks() const { return second_looks_; }
  // Device memory: residual_bytes() grows with the parameters, entry_bytes() with the entries.
  std::size_t residual_bytes() const { return residual_.bytes(); }
  std::size_t entry_bytes() const;
  // Magnitude of the smallest entry of the last update, in weight units. Scope::tensor: the smallest over all tensors.
  double threshold() const;

 private:
  // The places on the device of the data of the rank with the same number.
  struct Place {
    std::uint32_t offset = 0;               // of its first parameter
    std::size_t first_tile = 0;             // in tiles_
    std::size_t first_candidate = 0;        // in candidate_index_ and candidate_value_
    std::uint32_t room = 0;                 // for candidates
    std::uint32_t candidates = 0;           // of the last scan, those that had room
    bool looks_at_all = false;              // the guess was off: select among all parameters
    std::size_t first_sum = 0;              // in sums_, during the computation of a mean
    std::uint32_t first = 0, selected = 0;  // its entries in the last update
  };

  DeviceCompressor(const Gpu& gpu, const ParamLayout& layout, compress::CompressorOptions options)
      : gpu_(&gpu), layout_(layout), options_(options) {}
  std::uint32_t entries_of(double density) const;
  void add_rank(std::uint32_t offset, std::uint32_t size);
  Source source_of(std::size_t rank) const;
  Result<void> make_room(DeviceUpdate& out);
  Result<void> absorb(const ScanArgs& change, DeviceUpdate& out);
  void scan(const ScanArgs& change);
  void finish_update();
  void forget_update();
  void select(std::size_t rank);
  Result<std::vector<Selection>> read_selections();
  Result<void> choose(DeviceUpdate& out);
  Result<void> choose_again(DeviceUpdate& out);
  void hide_left_out();
  Result<void> emit(const std::vector<Selection>& selections, DeviceUpdate& out);
  Result<void> set_steps(DeviceUpdate& out);
  Result<std::vector<float>> mean_magnitudes(const DeviceUpdate& update);

  const Gpu* gpu_;
  ParamLayout layout_;
  compress::CompressorOptions options_;
  std::uint32_t entries_ = 1;
  std::vector<compress::RankGroup> ranks_;
  std::vector<Place> places_;
  std::uint64_t second_looks_ = 0;
  DeviceArray<float> residual_;
  DeviceArray<std::uint32_t> candidate_index_;
  DeviceArray<float> candidate_value_;
  DeviceArray<Tile> tiles_;
  DeviceArray<std::uint32_t> bins_, tile_counts_;
  DeviceArray<Selection> selections_;
  DeviceArray<double> sums_;
  DeviceArray<std::uint32_t> pending_;  // sent, and still in the residual: the first pending_count_
  std::uint32_t pending_count_ = 0;
  HiddenValues left_out_;  // since the last absorb()
  TensorCounter counter_;
};

}  // namespace rumor::gpu
