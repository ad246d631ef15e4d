// LstmDecoder: an LSTM that predicts one token after another. It keeps the state alone, so a token costs one pass over
// the weights and the text before it may be of any length.
//
// Bits: its logits are those of models/families/lstm.h for the same tokens, equal everywhere.
// Memory: some ten floats a unit. Thread: one caller at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/families/lstm.h"
#include "models/decoders/token_decoder.h"

namespace rumor::models {

class LstmDecoder final : public TokenDecoder {
 public:
  // `params` belong to the caller and must outlive this. Requires: they are of `shape`.
  LstmDecoder(LstmShape shape, std::span<const float> params);

  std::span<const float> read(Token token) override;

 private:
  struct State {
    std::vector<float> out, cell, cell_before;  // [padded units]
  };

  void advance(const LstmShape::Layer& at, long inputs, const float* x, State& state);

  LstmShape shape_;
  const float* params_;
  std::vector<State> states_;        // of each layer
  std::vector<float> sums_, gates_;  // [4 units], in the order of the tensors; in groups of 16 units
  std::vector<float> logits_;
};

}  // namespace rumor::models
