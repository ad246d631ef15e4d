// Attention: each position of a row looks at itself and at those before it, with several heads (Vaswani et
// al. 2017).
//
//   qkv  [batch * context, row]: for each position its queries, then keys, then values; heads * head_size floats of
//        queries, groups * head_size of keys and of values
//   y    [batch * context, heads * head_size]:   per head  softmax(q k^T / sqrt(head_size), causal) v
//
// Several heads may share keys and values (grouped-query attention, Ainslie et al. 2023): heads / groups neighbours do.
//
// The softmax is not kept. Two numbers per row are, from which the backward pass recomputes it, one head at a time.
// So memory is 2 * heads floats per position, and context^2 * 2 per thread for the backward pass. Blocks of `block`
// positions that are above the diagonal are skipped.
//
// Thread: one caller at a time per object. The groups of a batch are dealt out over `parallel`.
#pragma once

#include <vector>

#include "runtime/base/large_vector.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/parallel.h"

namespace rumor::models {

class Attention {
 public:
  struct Shape {
    long batch, context, heads, head_size;
    long groups = heads;  // of heads with keys and values in common. Requires: divides heads
    long width() const { return heads * head_size; }
    long row() const { return (heads + 2 * groups) * head_size; }  // of qkv
    long group_heads() const { return heads / groups; }
  };
  static constexpr long block = 64;

  void forward(Parallel* parallel, Shape shape, const float* qkv, float* y);

  // Backward pass of the last forward, with its qkv and y. change: d loss / d y -> qkv_change, overwritten.
  void backward(Parallel* parallel, Shape shape, const float* qkv, const float* y, const float* change,
                float* qkv_change);

  std::size_t memory_bytes() const {
    std::size_t bytes = capacity_bytes(top_, weight_);
    for (const Scratch& scratch : scratch_) bytes += capacity_bytes(scratch);
    return bytes;
  }

 private:
  struct Group;  // the heads of one group in one row of the batch
  using Scratch = LargeVector<float>;
  template <class Task>
  void each_group(Parallel* parallel, Shape shape, Task&& task);
  void look_back(const Group& group, long head, const float* qkv, const float* y, const float* change,
                 const float* keys, const float* values, float* looks, float* qkv_change) const;

  std::vector<float> top_,
      weight_;                    // [batch][heads][context]: models/kernels/sequence_kernels.h, causal_exponentials
  std::vector<Scratch> scratch_;  // one for each piece of the work
};

}  // namespace rumor::models
