// Tokenizer: byte-level byte-pair encoding as tokenizer.json of Hugging Face's tokenizers describes it, the tokenizer
// of GPT-2, Llama 3 and Qwen2.
//
// A text is encoded in this order, with the same result as tokenizers' encode(text, add_special_tokens=False):
//   1. Added tokens, such as <|endoftext|>, are cut out where they stand, the longest at the leftmost place.
//   2. The rest is brought into Unicode's normalization form C or KC, if the file says so.
//   3. Regular expressions cut it into pieces, each the pieces of the one before (models/tokenizer/split_pattern.h).
//   4. The bytes of each piece are merged (models/tokenizer/pair_merger.h).
// Templates that put special tokens around a text, padding and truncation are left to who uses the tokens.
//
// Thread: immutable once made. A TokenEncoder has one owner.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/tokenizer/pair_merger.h"
#include "models/tokenizer/split_pattern.h"
#include "models/tokenizer/unicode.h"
#include "runtime/base/result.h"
#include "runtime/base/types.h"

namespace rumor::models {

// A token that is found in a text as it stands.
struct AddedToken {
  std::string content;
  std::uint32_t id = 0;
  bool normalized = false;  // looked for after the text was normalized, not before
};

// The content of a tokenizer.json, read and checked (parse_tokenizer).
struct TokenizerParts {
  std::vector<std::string> tokens;  // the bytes of each token by its number; empty: there is none of that number
  std::unordered_map<std::string, std::uint32_t> numbers;  // of the tokens that merging knows, by their bytes
  std::vector<TokenMerge> merges;
  std::vector<AddedToken> added;
  std::array<std::uint32_t, 256> bytes{};  // the token of each byte
  std::vector<std::string> patterns;       // of the pre-tokenizer, in order; at least one
  NormalForm form = NormalForm::none;      // that the text is brought into
  bool whole_pieces = false;               // a piece that is a token is not made by merging (ignore_merges)
};

class Tokenizer {
 public:
  // Errors: Errc::mismatch for a pattern that cannot be run.
  static Result<std::shared_ptr<const Tokenizer>> create(TokenizerParts parts);

  // One more than the largest number of a token.
  std::uint32_t vocabulary() const { return static_cast<std::uint32_t>(parts_.tokens.size()); }
  // The bytes of a token; empty for a number without one. Bytes of several tokens together are UTF-8, not each alone.
  std::string_view bytes_of(std::uint32_t token) const;
  // The token of a byte alone.
  std::uint32_t token_of(unsigned char byte) const { return parts_.bytes[byte]; }
  // The token that begins a text, by its usual names (<|begin_of_text|>, <|endoftext|>), or nothing.
  std::optional<std::uint32_t> beginning() const;
  // SHA-256 of everything that decides which tokens a text has; not of the file, which may be laid out in many ways.
  const Hash256& hash() const { return hash_; }

 private:
  friend class TokenEncoder;
  Tokenizer(TokenizerParts parts, std::vector<SplitPattern> splits);

  // Added tokens by their first byte, the longest first.
  using Starts = std::array<std::vector<const AddedToken*>, 256>;
  static const AddedToken* token_at(const Starts& starts, std::string_view text);

  TokenizerParts parts_;
  std::vector<SplitPattern> splits_;  // of parts_.patterns
  PairMerger merger_;
  std::vector<AddedToken> raw_, normalized_;  // parts_.added, in the two passes
  Starts raw_starts_, normalized_starts_;
  Hash256 hash_;
};

// Encodes texts with one tokenizer, and remembers the tokens of short pieces.
class TokenEncoder {
 public:
  // Called now and then with the number of bytes of the text that are encoded.
  using Progress = std::function<void(std::uint64_t bytes)>;

  explicit TokenEncoder(std::shared_ptr<const Tokenizer> tokenizer);

  // Appends the tokens of `text`. Errors: Errc::corrupt for bytes that are no UTF-8, with their offset; Errc::limit
  // for a pattern that takes too many steps.
  Result<void> encode(std::string_view text, std::vector<std::uint32_t>& tokens, const Progress& progress = {});

 private:
  using Section = std::function<Result<void>(std::string_view)>;

  Result<void> cut(const Tokenizer::Starts& starts, std::string_view text, std::vector<std::uint32_t>& tokens,
                   const Section& section);
  // Cuts by the pattern of this number and by those after it, then merges.
  Result<void> encode_section(std::string_view text, std::size_t pattern, std::vector<std::uint32_t>& tokens,
                              const Progress& progress);
  void encode_piece(std::string_view piece, std::vector<std::uint32_t>& tokens);

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::shared_ptr<SplitPattern::Matcher>> matchers_;  // of each pattern
  PairMerger::Memory memory_;
  std::unordered_map<std::string, std::vector<std::uint32_t>> known_;
  std::string key_;
  std::uint64_t done_ = 0, told_ = 0;  // bytes
};

}  // namespace rumor::models
