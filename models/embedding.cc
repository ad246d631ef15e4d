#include "models/embedding.h"

#include <algorithm>

#include "models/kernels.h"
#include "models/portable_math.h"
#include "models/sequence_kernels.h"
#include "models/tasks.h"

namespace rumor::models {

void embed(Parallel* parallel, const TokenBatch& batch, long width, const float* table, const float* position,
           float* y) {
  const SequenceKernels& k = *kernels().sequence;
  each_range(parallel, batch.rows(), 16, [&](Range part) {
    for (long row = part.begin; row < part.end; ++row)
      k.add(width, table + batch.token(row) * width, position + row % batch.context * width, y + row * width);
  });
}

// Cut by columns: rows of one token meet in one place.
void embed_backward(Parallel* parallel, const TokenBatch& batch, long width, const float* change,
                    float* table_gradient, float* position_gradient) {
  const SequenceKernels& k = *kernels().sequence;
  each_range(parallel, width, 16, [&](Range part) {
    for (long place = 0; place < batch.context; ++place)
      std::fill_n(position_gradient + place * width + part.begin, part.size(), 0.0f);
    for (long row = 0; row < batch.rows(); ++row) {
      const float* from = change + row * width + part.begin;
      float* token = table_gradient + batch.token(row) * width + part.begin;
      float* place = position_gradient + row % batch.context * width + part.begin;
      k.add(part.size(), token, from, token);
      k.add(part.size(), place, from, place);
    }
  });
}

struct TiedHead::Piece {
  long first, rows, wide;  // wide: floats from one row of the transposed matrices to the next
  long all_rows, vocabulary;
};

// In: logits_. Out: the sum of the losses; with gradients, logits_ becomes d (mean loss) / d logits.
double TiedHead::softmax(Parallel* parallel, const TokenBatch& batch, const Piece& piece,
                         bool with_gradients) {
  const SequenceKernels& k = *kernels().sequence;
  double loss = 0;
  for (long row = 0; row < piece.rows; ++row)
    loss -= static_cast<double>(
        logits_[static_cast<std::size_t>(batch.target(piece.first + row) * piece.wide + row)]);
  each_range(parallel, piece.rows, 16, [&](Range part) {
    float* logits = logits_.data() + part.begin;
    float *top = top_.data() + part.begin, *sum = sum_.data() + part.begin;
    k.column_exponentials(piece.vocabulary, part.size(), logits, piece.wide, top, sum);
    if (!with_gradients) return;
    float factor[16];
    const float rows = static_cast<float>(piece.all_rows);
    for (long at = 0; at < part.size(); at += 16) {
      const long count = std::min(16l, part.size() - at);
      for (long i = 0; i < count; ++i) factor[i] = 1 / (sum[at + i] * rows);
      k.scale_columns(piece.vocabulary, count, factor, logits + at, piece.wide);
    }
    for (long row = 0; row < part.size(); ++row)
      logits[batch.target(piece.first + part.begin + row) * piece.wide + row] -= 1 / rows;
  });
  for (long row = 0; row < piece.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    loss += static_cast<double>(top_[at]) + portable_log(static_cast<double>(sum_[at]));
  }
  return loss;
}

double TiedHead::loss(Parallel* parallel, const TokenBatch& batch, long width, long vocabulary,
                      const float* x, const float* table, const Gradients* gradients) {
  constexpr long floats_max = 16 << 20;  // of logits at a time
  const long rows_max = std::clamp(floats_max / vocabulary / 16 * 16, 64l, 512l);
  double loss = 0;
  for (long first = 0; first < batch.rows(); first += rows_max) {
    const long rows = std::min(rows_max, batch.rows() - first), wide = (rows + 15) / 16 * 16 + 16;
    const Piece piece{first, rows, wide, batch.rows(), vocabulary};
    room_in(turned_, static_cast<std::size_t>(width * wide));
    room_in(logits_, static_cast<std::size_t>(vocabulary * wide));
    top_.resize(static_cast<std::size_t>(rows));
    sum_.resize(static_cast<std::size_t>(rows));
    const float* here = x + first * width;
    kernels().transpose(rows, width, here, width, turned_.data(), wide);
    // logits[vocabulary][rows] = table[vocabulary][width] * x[rows][width]^T
    parallel_matmul(parallel, vocabulary, rows, width, {table, width, 1}, turned_.data(), wide,
                    logits_.data(), wide, Start::zero);
    loss += softmax(parallel, batch, piece, gradients != nullptr);
    if (!gradients) continue;
    // d table[vocabulary][width] += d logits * x;  d x[rows][width] = d logits^T * table
    parallel_matmul(parallel, vocabulary, width, rows, {logits_.data(), wide, 1}, here, width,
                    gradients->table, width, first == 0 ? Start::zero : Start::output);
    parallel_matmul(parallel, rows, width, vocabulary, {logits_.data(), 1, wide}, table, width,
                    gradients->x + first * width, width, Start::zero);
  }
  return loss;
}

}  // namespace rumor::models
