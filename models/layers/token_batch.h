// TokenBatch: rows of a text, as the layers of a language model read them.
//
// Thread: plain values.
#pragma once

#include <cstdint>

namespace rumor::models {

// The number of a token in its vocabulary. 32 bits: Llama 3 has 128,256 tokens.
using Token = std::uint32_t;

// The most tokens that a vocabulary may have.
inline constexpr std::uint32_t vocabulary_max = 1u << 20;

// rows of a batch, `context` tokens each; a row of `tokens` has one more, the last one's successor.
// tokens: [batch, context + 1], each below the vocabulary.
struct TokenBatch {
  const Token* tokens;
  long batch, context;
  long rows() const { return batch * context; }
  Token token(long row) const { return tokens[row / context * (context + 1) + row % context]; }
  Token target(long row) const { return tokens[row / context * (context + 1) + row % context + 1]; }
};

}  // namespace rumor::models
