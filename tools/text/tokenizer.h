// Tokenizer: converts between text and the tokens of a GPT.
//
// With a vocabulary of 256, a token is a byte. With any other, the file vocab.json beside the model (token ->
// number, in GPT-2's spelling of bytes as letters) defines the tokens. Without that file, text is numbers:
// "15496 995". Thread: immutable once opened.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "tools/text/byte_pairs.h"

namespace rumor::tools {

class Tokenizer {
 public:
  // Errors: Errc::corrupt, when vocab.json is there and cannot be read as one.
  static Result<Tokenizer> open(const std::string& directory, std::uint32_t vocabulary);

  // With vocab.json as tools/text/byte_pairs.h says.
  // Errors: Errc::usage: a byte that is no token; no number, or one beyond the vocabulary, where text is numbers.
  Result<std::vector<models::Token>> encode(std::string_view text) const;
  // Bytes for the terminal, including the separator of two numbers.
  std::string decode(models::Token token) const;
  // The token that precedes a text without a prompt: a new line, or GPT-2's end of text.
  models::Token beginning() const;
  // A note for the user about the form of the text, or empty.
  const std::string& note() const { return note_; }

 private:
  enum class Kind : std::uint8_t { bytes, pieces, numbers };
  Kind kind_ = Kind::bytes;
  std::uint32_t vocabulary_ = 256;
  std::vector<std::string> pieces_;  // of each token
  Vocabulary tokens_;
  std::string note_;
};

}  // namespace rumor::tools
