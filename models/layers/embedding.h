// Embedding: the vector of a token plus that of its position, and the loss of predicting the next token with the same
// table (the tied head).
//
// Thread: one caller at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "models/layers/soft_targets.h"
#include "models/layers/token_batch.h"
#include "runtime/base/large_vector.h"
#include "runtime/base/memory_bytes.h"
#include "runtime/base/parallel.h"

namespace rumor::models {

// y[row] = table[token] + position[place]. table: [vocabulary, width]; position: [context, width]; y: [rows,
// width].
void embed(Parallel* parallel, const TokenBatch& batch, long width, const float* table, const float* position,
           float* y);

// change: [rows, width], d loss / d y. Is added to table_gradient [vocabulary, width]; position_gradient
// [context, width] is overwritten.
void embed_backward(Parallel* parallel, const TokenBatch& batch, long width, const float* change,
                    float* table_gradient, float* position_gradient);

// Softmax cross-entropy over logits x table^T, a piece of the rows at a time: the logits of a large
// vocabulary are the largest thing there is. They are kept as [vocabulary, rows of the piece], so that no
// table is transposed and sums over the vocabulary run down independent lanes.
class TiedHead {
 public:
  struct Gradients {
    float* x;      // [rows, width], overwritten
    float* table;  // [vocabulary, width], overwritten
  };

  // Sum over the rows of -log of the probability of their targets, in nats. x: [rows, width]; table:
  // [vocabulary, width]. With `gradients`: those of the mean over the rows.
  double loss(Parallel* parallel, const TokenBatch& batch, long width, long vocabulary, const float* x,
              const float* table, const Gradients* gradients, const SoftTargets& soft = {});
  // The probability of every token in every place: out [rows, vocabulary].
  void predict(Parallel* parallel, const TokenBatch& batch, long width, long vocabulary, const float* x,
               const float* table, float* out);

  std::size_t memory_bytes() const { return capacity_bytes(turned_, logits_, top_, sum_); }

 private:
  struct Piece;
  template <class Work>  // work(piece), its logits being there
  void each_piece(Parallel* parallel, long rows, long width, long vocabulary, const float* x, const float* table,
                  const Work& work);
  double softmax(Parallel* parallel, const TokenBatch& batch, const Piece& piece, const SoftTargets& soft,
                 bool with_gradients);
  double soft_product(const Piece& piece, const SoftTargets& soft) const;

  LargeVector<float> turned_;  // x of a piece, transposed: [width][rows]
  LargeVector<float> logits_;  // [vocabulary][rows]
  std::vector<float> top_, sum_;
};

}  // namespace rumor::models
