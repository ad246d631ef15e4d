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

// Offsets of the parts of one head in qkv, or in its change; rows are 3 d floats apart, those of y are d.
struct Attention::Head {
  Shape shape;
  long batch, head;

  long row() const { return 3 * shape.width(); }
  long query() const { return batch * shape.context * row() + head * shape.head_size; }
  long key() const { return query() + shape.width(); }
  long value() const { return key() + shape.width(); }
  long output() const { return batch * shape.context * shape.width() + head * shape.head_size; }
  long statistics() const { return (batch * shape.heads + head) * shape.context; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(shape.head_size)); }
};

// task(head, scratch) for all heads of all rows of the batch.
template <class Task>
void Attention::each_head(Parallel* parallel, Shape shape, Task&& task) {
  const std::size_t pieces = parallel ? 4 * std::size_t{parallel->width()} : 1;
  scratch_.resize(std::max(scratch_.size(), pieces));
  each_task(parallel, pieces, [&](std::size_t i) {
    const Range part = piece_of(shape.batch * shape.heads, pieces, i, 1);
    for (long at = part.begin; at < part.end; ++at)
      task(Head{shape, at / shape.heads, at % shape.heads}, scratch_[i]);
  });
}

void Attention::forward(Parallel* parallel, Shape shape, const float* qkv, float* y) {
  const auto rows = static_cast<std::size_t>(shape.batch * shape.heads * shape.context);
  top_.resize(rows);
  weight_.resize(rows);
  const KernelTable& k = kernels();
  const long size = shape.head_size, context = shape.context, width = shape.width(), wide = padded(context);
  each_head(parallel, shape, [&](const Head& head, Scratch& scratch) {
    scratch.resize(std::max(scratch.size(), static_cast<std::size_t>((size + block) * wide)));
    float* keys = scratch.data();       // [head_size][context]
    float* looks = keys + size * wide;  // [block][context]
    k.transpose(context, size, qkv + head.key(), head.row(), keys, wide);
    for (long first = 0; first < context; first += block) {
      const long rows_here = std::min(block, context - first), end = first + rows_here;
      float* top = top_.data() + head.statistics() + first;
      float* weight = weight_.data() + head.statistics() + first;
      const MatrixView query{qkv + head.query() + first * head.row(), head.row(), 1};
      k.matmul(rows_here, end, size, query, keys, wide, looks, wide, Start::zero);
      k.sequence->causal_exponentials(rows_here, first, end, head.scale(), looks, wide, top, weight);
      float* out = y + head.output() + first * width;
      k.matmul(rows_here, size, end, {looks, wide, 1}, qkv + head.value(), head.row(), out, width,
               Start::zero);
      k.sequence->scale_rows(rows_here, size, weight, out, width);
    }
  });
}

void Attention::backward(Parallel* parallel, Shape shape, const float* qkv, const float* y,
                         const float* change, float* qkv_change) {
  RUMOR_CHECK(top_.size() == static_cast<std::size_t>(shape.batch * shape.heads * shape.context));
  const KernelTable& k = kernels();
  const long size = shape.head_size, context = shape.context, width = shape.width(), wide = padded(context);
  each_head(parallel, shape, [&](const Head& head, Scratch& scratch) {
    scratch.resize(std::max(scratch.size(), static_cast<std::size_t>(2 * (size + context) * wide + block)));
    float* keys = scratch.data();           // [head_size][context]
    float* values = keys + size * wide;     // [head_size][context]
    float* looks = values + size * wide;    // [context][context]: the softmax
    float* moves = looks + context * wide;  // [context][context]: d loss / d (q k^T)
    float* dots = moves + context * wide;   // [block]
    const long row = head.row();
    k.transpose(context, size, qkv + head.key(), row, keys, wide);
    k.transpose(context, size, qkv + head.value(), row, values, wide);
    for (long first = 0; first < context; first += block) {
      const long rows_here = std::min(block, context - first), end = first + rows_here;
      float *look = looks + first * wide, *move = moves + first * wide;
      const float* out = y + head.output() + first * width;
      const float* out_change = change + head.output() + first * width;
      const long statistics = head.statistics() + first;
      k.matmul(rows_here, end, size, {qkv + head.query() + first * row, row, 1}, keys, wide, look, wide,
               Start::zero);
      k.matmul(rows_here, end, size, {out_change, width, 1}, values, wide, move, wide, Start::zero);
      k.sequence->row_dots(rows_here, size, out, width, out_change, width, dots);
      k.sequence->causal_backward(rows_here, first, end, head.scale(), top_.data() + statistics,
                                  weight_.data() + statistics, dots, look, move, wide);
      // d q[rows][size] = move[rows][end] * k[end][size]
      k.matmul(rows_here, size, end, {move, wide, 1}, qkv + head.key(), row,
               qkv_change + head.query() + first * row, row, Start::zero);
    }
    for (long first = 0; first < context; first += block) {  // of columns: looked at from the rows below only
      const long columns = std::min(block, context - first), depth = context - first;
      const long corner = first * wide + first;
      // d k[columns][size] = move^T * q;  d v[columns][size] = softmax^T * d y
      k.matmul(columns, size, depth, {moves + corner, 1, wide}, qkv + head.query() + first * row, row,
               qkv_change + head.key() + first * row, row, Start::zero);
      k.matmul(columns, size, depth, {looks + corner, 1, wide}, change + head.output() + first * width, width,
               qkv_change + head.value() + first * row, row, Start::zero);
    }
  });
}

}  // namespace rumor::models
