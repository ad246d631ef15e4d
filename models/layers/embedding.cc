#include "models/layers/embedding.h"

#include <algorithm>

#include "models/kernels/kernels.h"
#include "models/kernels/portable_math.h"
#include "models/kernels/sequence_kernels.h"
#include "models/kernels/tasks.h"

namespace rumor::models {

void embed(Parallel* parallel, const TokenBatch& batch, long width, const float* table, const float* position,
           float* y) {
  const SequenceKernels& k = *kernels().sequence;
  each_range(parallel, batch.rows(), 16, [&](Range part) {
    for (long row = part.begin; row < part.end; ++row) {
      const float* vector = table + batch.token(row) * width;
      if (position)
        k.add(width, vector, position + row % batch.context * width, y + row * width);
      else
        std::copy_n(vector, width, y + row * width);
    }
  });
}

// Cut by columns: rows of one token meet in one place.
void embed_backward(Parallel* parallel, const TokenBatch& batch, long width, const float* change,
                    float* table_gradient, float* position_gradient) {
  const SequenceKernels& k = *kernels().sequence;
  each_range(parallel, width, 16, [&](Range part) {
    for (long place = 0; position_gradient && place < batch.context; ++place)
      std::fill_n(position_gradient + place * width + part.begin, part.size(), 0.0f);
    for (long row = 0; row < batch.rows(); ++row) {
      const float* from = change + row * width + part.begin;
      float* token = table_gradient + batch.token(row) * width + part.begin;
      k.add(part.size(), token, from, token);
      if (!position_gradient) continue;
      float* place = position_gradient + row % batch.context * width + part.begin;
      k.add(part.size(), place, from, place);
    }
  });
}

struct TokenHead::Piece {
  long first, rows, wide;  // wide: floats from one row of the transposed matrices to the next
  long all_rows, vocabulary;
};

// Calls work(piece) with its logits in logits_, and with room for the softmax.
template <class Work>
void TokenHead::each_piece(Parallel* parallel, long all_rows, long width, long vocabulary, const float* x,
                          Weights weights, const Work& work) {
  constexpr long floats_max = 16 << 20;  // of logits at a time
  const long rows_max = std::clamp(floats_max / vocabulary / 16 * 16, 64l, 512l);
  for (long first = 0; first < all_rows; first += rows_max) {
    const long rows = std::min(rows_max, all_rows - first), wide = (rows + 15) / 16 * 16 + 16;
    room_in(turned_, static_cast<std::size_t>(width * wide));
    room_in(logits_, static_cast<std::size_t>(vocabulary * wide));
    top_.resize(static_cast<std::size_t>(rows));
    sum_.resize(static_cast<std::size_t>(rows));
    kernels().transpose(rows, width, x + first * width, width, turned_.data(), wide);
    for (long token = 0; weights.bias && token < vocabulary; ++token)
      std::fill_n(logits_.data() + token * wide, rows, weights.bias[token]);
    // logits[vocabulary][rows] = bias[vocabulary] + table[vocabulary][width] * x[rows][width]^T
    parallel_matmul(parallel, vocabulary, rows, width, {weights.table, width, 1}, turned_.data(), wide,
                    logits_.data(), wide, weights.bias ? Start::output : Start::zero);
    work(Piece{first, rows, wide, all_rows, vocabulary});
  }
}

// In: logits_. Out: the sum of the losses; with gradients, logits_ becomes d (mean loss) / d logits.
double TokenHead::softmax(Parallel* parallel, const TokenBatch& batch, const Piece& piece, const SoftTargets& soft,
                         bool with_gradients) {
  const SequenceKernels& k = *kernels().sequence;
  const long vocabulary = piece.vocabulary;
  const float weight = soft.probability.empty() ? 0 : soft.weight;
  double loss = -soft_product(piece, soft);
  for (long row = 0; row < piece.rows; ++row)
    loss -= static_cast<double>(
        logits_[static_cast<std::size_t>(batch.target(piece.first + row) * piece.wide + row)]);
  each_range(parallel, piece.rows, 16, [&](Range part) {
    float* logits = logits_.data() + part.begin;
    float *top = top_.data() + part.begin, *sum = sum_.data() + part.begin;
    k.column_exponentials(vocabulary, part.size(), logits, piece.wide, top, sum);
    if (!with_gradients) return;
    float factor[16];
    const float rows = static_cast<float>(piece.all_rows);
    for (long at = 0; at < part.size(); at += 16) {
      const long count = std::min(16l, part.size() - at);
      for (long i = 0; i < count; ++i) factor[i] = (1 + weight) / (sum[at + i] * rows);
      k.scale_columns(vocabulary, count, factor, logits + at, piece.wide);
    }
    for (long row = 0; row < part.size(); ++row) {
      const long at = piece.first + part.begin + row;
      logits[batch.target(at) * piece.wide + row] -= 1 / rows;
      if (soft.probability.empty()) continue;
      const float* wanted = soft.probability.data() + at * vocabulary;
      for (long token = 0; token < vocabulary; ++token)
        logits[token * piece.wide + row] -= weight * wanted[token] / rows;
    }
  });
  for (long row = 0; row < piece.rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    loss += (1 + static_cast<double>(weight)) *
            (static_cast<double>(top_[at]) + portable_log(static_cast<double>(sum_[at])));
  }
  return loss;
}

// weight * sum of probability * logit.
double TokenHead::soft_product(const Piece& piece, const SoftTargets& soft) const {
  if (soft.probability.empty()) return 0;
  double product = 0;
  for (long row = 0; row < piece.rows; ++row) {
    const float* wanted = soft.probability.data() + (piece.first + row) * piece.vocabulary;
    for (long token = 0; token < piece.vocabulary; ++token)
      product += static_cast<double>(wanted[token]) *
                 static_cast<double>(logits_[static_cast<std::size_t>(token * piece.wide + row)]);
  }
  return static_cast<double>(soft.weight) * product;
}

// d bias += the sum over the rows of d logits, which is in logits_.
void TokenHead::add_bias_gradient(Parallel* parallel, const Piece& piece, float* bias) {
  const SequenceKernels& k = *kernels().sequence;
  ones_.resize(static_cast<std::size_t>(piece.rows), 1.0f);
  bias_sums_.resize(static_cast<std::size_t>(piece.vocabulary));
  each_range(parallel, piece.vocabulary, 16, [&](Range part) {
    float* sums = bias_sums_.data() + part.begin;
    k.row_dots(part.size(), piece.rows, logits_.data() + part.begin * piece.wide, piece.wide, ones_.data(), 0, sums);
    if (piece.first == 0) {
      std::copy_n(sums, part.size(), bias + part.begin);
    } else {
      k.add(part.size(), bias + part.begin, sums, bias + part.begin);
    }
  });
}

double TokenHead::loss(Parallel* parallel, const TokenBatch& batch, long width, long vocabulary,
                      const float* x, Weights weights, const Gradients* gradients, const SoftTargets& soft) {
  double loss = 0;
  each_piece(parallel, batch.rows(), width, vocabulary, x, weights, [&](const Piece& piece) {
    loss += softmax(parallel, batch, piece, soft, gradients != nullptr);
    if (!gradients) return;
    if (gradients->bias) add_bias_gradient(parallel, piece, gradients->bias);
    // d table[vocabulary][width] += d logits * x;  d x[rows][width] = d logits^T * table
    if (gradients->table)
      parallel_matmul(parallel, vocabulary, width, piece.rows, {logits_.data(), piece.wide, 1},
                      x + piece.first * width, width, gradients->table, width,
                      piece.first == 0 ? Start::zero : Start::output);
    parallel_matmul(parallel, piece.rows, width, vocabulary, {logits_.data(), 1, piece.wide}, weights.table, width,
                    gradients->x + piece.first * width, width, Start::zero);
  });
  return loss;
}

void TokenHead::predict(Parallel* parallel, const TokenBatch& batch, long width, long vocabulary, const float* x,
                       Weights weights, float* out) {
  each_piece(parallel, batch.rows(), width, vocabulary, x, weights, [&](const Piece& piece) {
    kernels().sequence->column_exponentials(vocabulary, piece.rows, logits_.data(), piece.wide, top_.data(),
                                            sum_.data());
    for (long row = 0; row < piece.rows; ++row)
      for (long token = 0; token < vocabulary; ++token)
        out[(piece.first + row) * vocabulary + token] =
            logits_[static_cast<std::size_t>(token * piece.wide + row)] / sum_[static_cast<std::size_t>(row)];
  });
}

}  // namespace rumor::models
