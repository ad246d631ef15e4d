// Reads tokenizer.json, the file of Hugging Face's tokenizers, where it describes a byte-level byte-pair encoding.
//
//   model          type BPE; vocab and merges; ignore_merges. No dropout, prefixes, suffixes or byte fallback
//   pre_tokenizer  ByteLevel with GPT-2's own pattern; or a Sequence of Split (Regex, Isolated) and Digits, and then
//                  ByteLevel with its pattern or without
//   normalizer     none, NFC or NFKC
//   decoder        ByteLevel, or none
//   added_tokens   without single_word, lstrip and rstrip
// Everything else is refused by its name, since tokens would differ from those that the model was trained with. What
// does not touch the tokens of a text (post_processor, truncation, padding) is skipped.
//
// Thread: pure functions. Memory: some twenty times the file while reading, since JSON is read as a tree.
#pragma once

#include <string>
#include <string_view>

#include "models/tokenizer/tokenizer.h"
#include "runtime/base/result.h"

namespace rumor::models {

inline constexpr std::uint64_t tokenizer_bytes_max = 256'000'000;
inline constexpr std::uint32_t token_numbers_max = 1 << 20;

// `source` names the text in errors. Errors: Errc::corrupt: no JSON, or a member that is missing, of another type, or
// out of range; Errc::mismatch: a part that is not supported.
Result<TokenizerParts> parse_tokenizer(std::string_view text, const std::string& source);

// The tokenizer of a file. Errors: Errc::not_found or Errc::io for the file; those of parse_tokenizer; Errc::mismatch
// for a pattern that cannot be run. Each names the file.
Result<std::shared_ptr<const Tokenizer>> open_tokenizer(const std::string& path);

}  // namespace rumor::models
