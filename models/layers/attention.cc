#include "models/layers/attention.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/kernels.h"
#include "models/kernels/sequence_kernels.h"
#include "models/kernels/tasks.h"
#include "runtime/base/check.h"

namespace rumor::models {

namespace {

// Floats from one row of a scratch matrix to the next: 16 more than there are, so that rows of a power of two
// do not all fall into one set of the cache.
long padded(long columns) {
  return (columns + 15) / 16 * 16 + 16;
}

}  // namespace

// Offsets of the parts of one group in qkv, or in its change, and of its heads in y.
struct Attention::Group {
  Shape shape;
  long batch, group;

  long start() const { return batch * shape.context * shape.row(); }
  long first_head() const { return group * shape.group_heads(); }
  long query(long head) const { return start() + (first_head() + head) * shape.head_size; }
  long key() const { return start() + (shape.heads + group) * shape.head_size; }
  long value() const { return key() + shape.groups * shape.head_size; }
  long output(long head) const {
    return batch * shape.context * shape.width() + (first_head() + head) * shape.head_size;
  }
  long statistics(long head) const { return (batch * shape.heads + first_head() + head) * shape.context; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(shape.head_size)); }
};

// task(group, scratch) for all groups of all rows of the batch.
template <class Task>
void Attention::each_group(Parallel* parallel, Shape shape, Task&& task) {
  RUMOR_CHECK(shape.groups >= 1 && shape.heads % shape.groups == 0);
  const std::size_t pieces = parallel ? 4 * std::size_t{parallel->width()} : 1;
  scratch_.resize(std::max(scratch_.size(), pieces));
  each_task(parallel, pieces, [&](std::size_t i) {
    const Range part = piece_of(shape.batch * shape.groups, pieces, i, 1);
    for (long at = part.begin; at < part.end; ++at)
      task(Group{shape, at / shape.groups, at % shape.groups}, scratch_[i]);
  });
}

void Attention::forward(Parallel* parallel, Shape shape, const float* qkv, float* y) {
  const auto rows = static_cast<std::size_t>(shape.batch * shape.heads * shape.context);
  top_.resize(rows);
  weight_.resize(rows);
  const KernelTable& k = kernels();
  const long size = shape.head_size, context = shape.context, width = shape.width(), row = shape.row();
  const long wide = padded(context);
  each_group(parallel, shape, [&](const Group& group, Scratch& scratch) {
    scratch.resize(std::max(scratch.size(), static_cast<std::size_t>((size + block) * wide)));
    float* keys = scratch.data();       // [head_size][context]
    float* looks = keys + size * wide;  // [block][context]
    k.transpose(context, size, qkv + group.key(), row, keys, wide);
    for (long head = 0; head < shape.group_heads(); ++head) {
      for (long first = 0; first < context; first += block) {
        const long rows_here = std::min(block, context - first), end = first + rows_here;
        float* top = top_.data() + group.statistics(head) + first;
        float* weight = weight_.data() + group.statistics(head) + first;
        const MatrixView query{qkv + group.query(head) + first * row, row, 1};
        k.matmul(rows_here, end, size, query, keys, wide, looks, wide, Start::zero);
        k.sequence->causal_exponentials(rows_here, first, end, group.scale(), looks, wide, top, weight);
        float* out = y + group.output(head) + first * width;
        k.matmul(rows_here, size, end, {looks, wide, 1}, qkv + group.value(), row, out, width, Start::zero);
        k.sequence->scale_rows(rows_here, size, weight, out, width);
      }
    }
  });
}

// The backward pass of one head as far as its query. Out: looks, [context][context], the softmax; behind it as much of
// d loss / d (q k^T).
void Attention::look_back(const Group& group, long head, const float* qkv, const float* y, const float* change,
                          const float* keys, const float* values, float* looks, float* qkv_change) const {
  const KernelTable& k = kernels();
  const Shape& shape = group.shape;
  const long size = shape.head_size, context = shape.context, width = shape.width(), row = shape.row();
  const long wide = padded(context);
  float* moves = looks + context * wide;
  float* dots = moves + context * wide;  // [block]
  for (long first = 0; first < context; first += block) {
    const long rows_here = std::min(block, context - first), end = first + rows_here;
    float *look = looks + first * wide, *move = moves + first * wide;
    const float* out = y + group.output(head) + first * width;
    const float* out_change = change + group.output(head) + first * width;
    const long statistics = group.statistics(head) + first, query = group.query(head) + first * row;
    k.matmul(rows_here, end, size, {qkv + query, row, 1}, keys, wide, look, wide, Start::zero);
    k.matmul(rows_here, end, size, {out_change, width, 1}, values, wide, move, wide, Start::zero);
    k.sequence->row_dots(rows_here, size, out, width, out_change, width, dots);
    k.sequence->causal_backward(rows_here, first, end, group.scale(), top_.data() + statistics,
                                weight_.data() + statistics, dots, look, move, wide);
    // d q[rows][size] = move[rows][end] * k[end][size]
    k.matmul(rows_here, size, end, {move, wide, 1}, qkv + group.key(), row, qkv_change + query, row, Start::zero);
  }
}

void Attention::backward(Parallel* parallel, Shape shape, const float* qkv, const float* y,
                         const float* change, float* qkv_change) {
  RUMOR_CHECK(top_.size() == static_cast<std::size_t>(shape.batch * shape.heads * shape.context));
  const KernelTable& k = kernels();
  const long size = shape.head_size, context = shape.context, width = shape.width(), row = shape.row();
  const long wide = padded(context);
  each_group(parallel, shape, [&](const Group& group, Scratch& scratch) {
    scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(2 * (size + context) * wide + block)));
    float* keys = scratch.data();         // [head_size][context]
    float* values = keys + size * wide;   // [head_size][context]
    float* looks = values + size * wide;  // [context][context], and as much for d loss / d (q k^T)
    k.transpose(context, size, qkv + group.key(), row, keys, wide);
    k.transpose(context, size, qkv + group.value(), row, values, wide);
    for (long head = 0; head < shape.group_heads(); ++head) {
      look_back(group, head, qkv, y, change, keys, values, looks, qkv_change);
      const Start start = head == 0 ? Start::zero : Start::output;
      for (long first = 0; first < context; first += block) {  // of columns: looked at from the rows below only
        const long columns = std::min(block, context - first), depth = context - first;
        const float *look = looks + first * wide + first, *move = look + context * wide;
        // d k[columns][size] += move^T * q;  d v[columns][size] += softmax^T * d y
        k.matmul(columns, size, depth, {move, 1, wide}, qkv + group.query(head) + first * row, row,
                 qkv_change + group.key() + first * row, row, start);
        k.matmul(columns, size, depth, {look, 1, wide}, change + group.output(head) + first * width, width,
                 qkv_change + group.value() + first * row, row, start);
      }
    }
  });
}

}  // namespace rumor::models
