// TokenDecoder: a language model that reads one token after another, and the rule by which a token is drawn.
//
// Thread: one caller at a time.
#pragma once

#include <cstdint>
#include <span>

#include "models/layers/token_batch.h"
#include "runtime/base/prng.h"

namespace rumor::models {

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  // Reads one more token; returns the logits of the next token, [vocabulary], valid until the next call. Requires: the
  // token is below the vocabulary.
  virtual std::span<const float> read(Token token) = 0;
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
