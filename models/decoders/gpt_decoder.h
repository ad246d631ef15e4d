// GptDecoder: a GPT that predicts one token after another. It keeps keys and values of the tokens it has read, so a
// token costs one pass over the weights, whatever the length of the text before it.
//
// Bits: its logits are those of models/families/gpt.h for the same tokens, equal everywhere.
// Memory: 2 * layers * context * embedding floats. Thread: one caller at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/families/gpt.h"
#include "models/decoders/token_decoder.h"
#include "models/layers/attention_memory.h"

namespace rumor::models {

class GptDecoder final : public ContextDecoder {
 public:
  // `params` belong to the caller and must outlive this. Requires: they are of `shape`.
  GptDecoder(GptShape shape, std::span<const float> params);

 private:
  void advance(Token token, long place) override;
  void predict(float* logits) override;
  // y = x W + b (+ y), one row.
  void project(long in, long out, const float* x, std::uint32_t weight, std::uint32_t bias,
               const float* residual, float* y) const;
  void norm(const float* x, std::uint32_t gain, std::uint32_t bias);

  GptShape shape_;
  const float* params_;
  std::vector<AttentionMemory> memory_;  // of each layer
  std::vector<float> sum_, normed_, qkv_, looked_, wide_;
};

}  // namespace rumor::models
