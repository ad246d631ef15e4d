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
#include "runtime/base/prng.h"

namespace rumor::models {

class GptDecoder {
 public:
  // `params` belong to the caller and must outlive this. Requires: they are of `shape`.
  GptDecoder(GptShape shape, std::span<const float> params);

  // Reads one more token; returns the logits of the next token, [vocabulary], valid until the next call. A full context
  // drops its older half and reads the newer half again. Requires: token < vocabulary.
  std::span<const float> read(Token token);

  const GptShape& shape() const { return shape_; }

 private:
  struct Memory {
    std::vector<float> keys;    // [heads][head_size][context]
    std::vector<float> values;  // [context][width]
  };

  void advance(Token token);
  void attend(const Memory& memory, long place);
  // y = x W + b (+ y), one row.
  void project(long in, long out, const float* x, std::uint32_t weight, std::uint32_t bias,
               const float* residual, float* y) const;
  void norm(const float* x, std::uint32_t gain, std::uint32_t bias);

  GptShape shape_;
  const float* params_;
  std::vector<Token> tokens_;  // read and not forgotten
  std::vector<Memory> memory_;         // of each layer
  std::vector<float> sum_, normed_, qkv_, looks_, looked_, wide_, logits_;
};

// The rule by which a token is sampled from logits.
struct SamplingRule {
  double temperature = 0.8;  // 0: the likeliest always; 1: as the model says; at most 100
  std::uint32_t top_k = 0;   // sample among this many most likely tokens; 0: all
};

// One token, by `prng`: the same everywhere for the same logits. Requires: logits finite and not empty,
// temperature >= 0.
Token draw_token(std::span<const float> logits, const SamplingRule& rule, Prng& prng);

}  // namespace rumor::models
