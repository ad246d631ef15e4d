// Tokenizer: converts between text and the tokens of a GPT.
//
// tokenizer.json beside the model defines the tokens (models/tokenizer/tokenizer_json.h). Without it, a token is a byte
// where the vocabulary is 256. With any other, the file vocab.json beside the model (token -> number, in GPT-2's
// spelling of bytes as letters) defines the tokens. Without that file too, text is numbers: "15496 995".
//
// Thread: immutable once opened.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/tokenizer/tokenizer.h"
#include "runtime/base/result.h"
#include "tools/text/byte_pairs.h"

namespace rumor::tools {

class Tokenizer {
 public:
  // file: a tokenizer.json; empty: the one in `directory`, if there is one. vocabulary: of the model, which may have
  // more tokens than the tokenizer. Errors: those of open_tokenizer; Errc::mismatch for a tokenizer with more tokens
  // than the model; Errc::corrupt, when vocab.json is there and cannot be read as one.
  static Result<Tokenizer> open(const std::string& directory, std::uint32_t vocabulary, const std::string& file = "");

  // With vocab.json as tools/text/byte_pairs.h says.
  // Errors: Errc::usage: a byte that is no token; no number, or one beyond the vocabulary, where text is numbers.
  Result<std::vector<models::Token>> encode(std::string_view text) const;
  // Bytes for the terminal, including the separator of two numbers.
  std::string decode(models::Token token) const;
  // The token that precedes a text without a prompt: that by which the tokenizer's texts begin, or else a new line; of
  // bytes a new line, of other tokens GPT-2's end of text.
  models::Token beginning() const;
  // A note for the user about the form of the text, or empty.
  const std::string& note() const { return note_; }

 private:
  enum class Kind : std::uint8_t { bytes, pieces, numbers, file };

  Result<void> open_file(const std::string& path);

  Kind kind_ = Kind::bytes;
  std::uint32_t vocabulary_ = 256;
  std::vector<std::string> pieces_;  // of each token
  Vocabulary tokens_;
  std::shared_ptr<const models::Tokenizer> file_;
  std::string note_;
};

}  // namespace rumor::tools
