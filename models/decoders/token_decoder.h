// TokenDecoder: a language model that reads one token after another, and the rule by which a token is drawn.
//
// Thread: one caller at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

// A decoder that sees a context of the last tokens. A full context drops its older half and reads the newer half again.
class ContextDecoder : public TokenDecoder {
 public:
  std::span<const float> read(Token token) final;

 protected:
  // Requires: context >= 1.
  ContextDecoder(long context, long vocabulary)
      : context_(context), logits_(static_cast<std::size_t>(vocabulary)) {}
  // Takes in a token at a place of the context, all places before it being taken in.
  virtual void advance(Token token, long place) = 0;
  // The logits after the last token.
  virtual void predict(float* logits) = 0;

 private:
  long context_;
  std::vector<Token> tokens_;  // read and not forgotten
  std::vector<float> logits_;
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
