// LlamaDecoder: a Llama that predicts one token after another.
//
// Bits: its logits are those of models/families/llama.h for the same tokens, equal everywhere.
// Memory: 2 * layers * context * kv_heads * head_size floats. Thread: one caller at a time.
#pragma once

#include <span>
#include <vector>

#include "models/families/llama.h"
#include "models/decoders/token_decoder.h"
#include "models/layers/attention_memory.h"

namespace rumor::models {

class LlamaDecoder final : public ContextDecoder {
 public:
  // `params` belong to the caller and must outlive this. Requires: they are of `shape`.
  LlamaDecoder(LlamaShape shape, std::span<const float> params);

 private:
  void advance(Token token, long place) override;
  void predict(float* logits) override;
  // y = W x + b (+ y), one row; bias or y may be left out.
  void project(long in, long out, const float* x, std::uint32_t weight, const float* start, float* y) const;
  void project_qkv(const LlamaShape::Layer& at);
  // -> normed_
  void norm(const float* x, std::uint32_t gain);

  LlamaShape shape_;
  const float* params_;
  Rotary rotary_;
  std::vector<AttentionMemory> memory_;  // of each layer
  std::vector<float> sum_, normed_, qkv_, looked_, gate_, up_;
};

}  // namespace rumor::models
