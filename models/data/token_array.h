// A sequence of tokens from one or several files: bytes of text, or little-endian words of 16 or 32 bits.
//
// The source bytes stay as they are, in memory or mapped (models/data/mapped_file.h). A row is widened when it is
// sampled. So a token costs one, two or four bytes, and the system streams files larger than memory.
//
// Thread: immutable once filled; copies share what they read from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/layers/token_batch.h"
#include "runtime/base/types.h"

namespace rumor::models {

// The vocabulary of GPT-2's byte-pair encoding.
inline constexpr std::uint32_t gpt2_vocabulary = 50'257, gpt2_end_of_text = 50'256;

class TokenArray {
 public:
  enum class Width : std::uint8_t { byte = 1, word = 2, wide = 4 };

  // Adds the tokens in `bytes`, which `owner` keeps alive. Requires: bytes.size() a multiple of the width.
  void append(std::shared_ptr<const void> owner, BytesView bytes, Width width);

  std::uint64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  // Tokens first, first + 1, ... Requires: first + out.size() <= size().
  void copy(std::uint64_t first, std::span<Token> out) const;
  // Part of the tokens. Requires: first + count <= size().
  TokenArray slice(std::uint64_t first, std::uint64_t count) const;

 private:
  struct Part {
    std::shared_ptr<const void> owner;
    BytesView bytes;
    Width width;
  };
  std::vector<Part> parts_;
  std::vector<std::uint64_t> ends_;  // of each part, counted in tokens from the start of all
};

}  // namespace rumor::models
