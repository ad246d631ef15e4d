// FollowedView: the weights as floats, for a trainer whose own copy is in the tensors of another program. It remembers
// where the weights changed, so that the copy can follow at those places alone.
//
// Thread: one owner. Memory: four bytes a parameter; updates are shared with the replica.
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
  FollowedView(std::uint32_t params, int grid_bits, std::uint64_t entries_max);

  std::span<const float> values() const { return values_; }
  // For changes that the copy need not follow.
  compress::FloatView view() { return {values_, unit()}; }
  float unit() const;
  int grid_bits() const { return grid_bits_; }

  // As Trainer::follow().
  void follow(Replica& replica, Parallel& parallel);

  // Since the last seen() the weights changed at the entries of changed(), at some of them more than once. If
  // everywhere(), as at the beginning, the places are not known.
  bool everywhere() const { return everywhere_; }
  std::span<const compress::SharedUpdate> changed() const { return changed_; }
  std::uint64_t changed_entries() const { return entries_; }
  void seen();

  std::size_t view_bytes() const;
  // This view's part of the shared updates.
  std::size_t entry_bytes() const;

 private:
  void changed_at(const compress::SharedUpdate& update);
  void changed_everywhere();

  LargeVector<float> values_;
  int grid_bits_;
  std::uint64_t entries_max_;
  std::vector<compress::SharedUpdate> changed_;
  std::uint64_t entries_ = 0;  // of changed_
  bool everywhere_ = true;
};

}  // namespace rumor
