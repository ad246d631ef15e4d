// Embedding: the vector of a token plus that of its position, and the loss of predicting the next token, with the same
// table (a tied head) or another.
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

// y[row] = table[token] + position[place]. table: [vocabulary, width]; position: [context, width], or null: y is the
// table's row alone; y: [rows, width].
void embed(Parallel* parallel, const TokenBatch& batch, long width, const float* table, const float* position,
           float* y);

// change: [rows, width], d loss / d y. Is added to table_gradient [vocabulary, width]; position_gradient
// [context, width] is overwritten, or null.
void embed_backward(Parallel* parallel, const TokenBatch& batch, long width, const float* change,
                    float* table_gradient, float* position_gradient);

// Softmax cross-entropy over logits x table^T, a piece of the rows at a time: the logits of a large
// vocabulary are the largest thing there is. They are kept as [vocabulary, rows of the piece], so that no
// table is transposed and sums over the vocabulary run down independent lanes.
class TokenHead {
 public:
  struct Weights {
    const float* table;           // [vocabulary, width]
    const float* bias = nullptr;  // [vocabulary], added to the logits; null: none
  };
  struct Gradients {
    float* x;               // [rows, width], overwritten
    float* table;           // [vocabulary, width], overwritten; null: not wanted
    float* bias = nullptr;  // [vocabulary], overwritten; null: not wanted, or there is none
  };

  // Sum over the rows of -log of the probability of their targets, in nats. x: [rows, width]. With `gradients`: those
  // of the mean over the rows.
  double loss(Parallel* parallel, const TokenBatch& batch, long width, long vocabulary, const float* x,
              Weights weights, const Gradients* gradients, const SoftTargets& soft = {});
  // The probability of every token in every place: out [rows, vocabulary].
  void predict(Parallel* parallel, const TokenBatch& batch, long width, long vocabulary, const float* x,
               Weights weights, float* out);

  std::size_t memory_bytes() const { return capacity_bytes(turned_, logits_, top_, sum_, ones_, bias_sums_); }

 private:
  struct Piece;
  template <class Work>  // work(piece), its logits being there
  void each_piece(Parallel* parallel, long rows, long width, long vocabulary, const float* x, Weights weights,
                  const Work& work);
  double softmax(Parallel* parallel, const TokenBatch& batch, const Piece& piece, const SoftTargets& soft,
                 bool with_gradients);
  double soft_product(const Piece& piece, const SoftTargets& soft) const;
  void add_bias_gradient(Parallel* parallel, const Piece& piece, float* bias);

  LargeVector<float> turned_;  // x of a piece, transposed: [width][rows]
  LargeVector<float> logits_;  // [vocabulary][rows]
  std::vector<float> top_, sum_;
  std::vector<float> ones_, bias_sums_;  // for the gradient of the bias
};

}  // namespace rumor::models
