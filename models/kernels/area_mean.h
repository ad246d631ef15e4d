// AreaMean: square pictures of another size. A new pixel is the mean of the old ones under it; those that lie under it
// in part count by their share. It shrinks pictures, and stretches maps.
//
//   y[i] = sum over j of x[j] * overlap(i, j) / from,   in rows, then in columns
//
// In units of which a side has from * to, new pixel i covers i * from to (i + 1) * from, and old pixel j covers j * to
// to (j + 1) * to. Overlaps are whole numbers, so a weight is rounded once.
//
// Bits: two matrix products (KernelTable::matmul), sums ascending. So values must be finite: a weight of 0 makes an
// infinity a NaN. Equal everywhere.
// Thread: const calls from any number of threads, each with its own scratch memory.
#pragma once

#include <cstdint>

#include "runtime/base/large_vector.h"

namespace rumor::models {

class AreaMean {
 public:
  // From pictures of from x from pixels to those of to x to. Requires: both in 1 to 65,536.
  AreaMean(std::uint32_t from, std::uint32_t to);

  std::uint32_t from() const { return from_; }
  std::uint32_t to() const { return to_; }

  // x [count][from][from] -> y [count][to][to]: planes of a data set's pictures. No overlap.
  void planes(std::size_t count, const float* x, float* y, LargeVector<float>& scratch) const;
  // x [from][from][channels] -> y [to][to][channels]: one map of a network. No overlap.
  void map(std::uint32_t channels, const float* x, float* y, LargeVector<float>& scratch) const;
  // change_x = d loss / d x, overwritten, from change_y = d loss / d y of one map.
  void map_backward(std::uint32_t channels, const float* change_y, float* change_x,
                    LargeVector<float>& scratch) const;

 private:
  std::uint32_t from_, to_;
  LargeVector<float> weight_;  // [to][from]
  LargeVector<float> turned_;  // [from][to]
};

}  // namespace rumor::models
