// FollowedView: the weights as floats, for a trainer whose own copy is in the tensors of another program. It remembers
// where the weights changed, so that the copy can follow at those places alone.
//
// It has no values of its own: it reads the replica's integers. The replica may add entries to them meanwhile. A value
// may therefore be newer than the last follow(); the next one names its place, and the copy follows once more.
//
// Thread: one owner, beside the replica's. Memory: none to speak of; updates are shared with the replica.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/payload/apply.h"
#include "runtime/base/large_vector.h"
#include "runtime/replica/replica.h"

namespace rumor {

class FollowedView {
 public:
  // entries_max: beyond so many changed entries the copy is better written anew.
  FollowedView(int grid_bits, std::uint64_t entries_max);

  // Requires: follow() was called, and its replica lives or was outlived.
  compress::WeightView values() const { return {weights_, unit()}; }
  float unit() const;
  int grid_bits() const { return grid_bits_; }

  // As Trainer::follow() and outlive(), on the replica's thread.
  void follow(Replica& replica, Parallel& parallel);
  void outlive(Replica& replica);

  // Since the last seen() the weights changed at the entries of changed(), at some of them more than once. If
  // everywhere(), as at the beginning, the places are not known.
  bool everywhere() const { return everywhere_; }
  std::span<const compress::SharedUpdate> changed() const { return changed_; }
  std::uint64_t changed_entries() const { return entries_; }
  void seen();

  // Weights that it has outlived the replica with.
  std::size_t weight_bytes() const;
  // This view's part of the shared updates.
  std::size_t entry_bytes() const;

 private:
  void changed_at(const compress::SharedUpdate& update);
  void changed_everywhere();

  std::span<const std::int32_t> weights_;  // the replica's, or `kept_`
  LargeVector<std::int32_t> kept_;
  int grid_bits_;
  std::uint64_t entries_max_;
  std::vector<compress::SharedUpdate> changed_;
  std::uint64_t entries_ = 0;  // of changed_
  bool everywhere_ = true;
};

}  // namespace rumor
