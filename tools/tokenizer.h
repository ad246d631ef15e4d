// Tokenizer: between text and what a GPT reads.
//
// Of a vocabulary of 256 a token is a byte. Of any other, the file vocab.json beside the model (token ->
// number, in GPT-2's spelling of bytes as letters) says what the tokens are; without one, text is numbers:
// "15496 995". Thread: immutable once opened.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace rumor::tools {

class Tokenizer {
 public:
  // Errors: Errc::corrupt, when vocab.json is there and cannot be read as one.
  static Result<Tokenizer> open(const std::string& directory, std::uint32_t vocabulary);

  // Errors: Errc::usage: no number, or one beyond the vocabulary, where text is numbers.
  // With vocab.json the longest token that fits is taken, again and again. GPT-2 itself merges pairs by rank,
  // which may cut a word elsewhere; a model reads both.
  Result<std::vector<std::uint16_t>> encode(std::string_view text) const;
  // Bytes for the terminal; what stands between two numbers too.
  std::string decode(std::uint16_t token) const;
  // What a text without a prompt begins after: a new line; GPT-2's end of text.
  std::uint16_t beginning() const;
  // Empty, or what the user should know of how text is read and written.
  const std::string& note() const { return note_; }

 private:
  enum class Kind : std::uint8_t { bytes, pieces, numbers };
  Kind kind_ = Kind::bytes;
  std::uint32_t vocabulary_ = 256;
  std::vector<std::string> pieces_;  // of each token
  std::map<std::string, std::uint16_t, std::less<>> tokens_;
  std::string note_;
};

}  // namespace rumor::tools
