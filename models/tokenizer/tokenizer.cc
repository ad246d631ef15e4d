#include "models/tokenizer/tokenizer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "models/tokenizer/unicode.h"
#include "runtime/base/bytes.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

// Pieces up to this length are remembered, until there are so many.
constexpr std::size_t known_piece_bytes_max = 64, known_pieces_max = 1 << 18;
constexpr std::uint64_t progress_bytes = 1 << 20;

Hash256 hash_of(const TokenizerParts& parts) {
  ByteWriter out;
  out.text(parts.patterns.size() == 1 ? "rumor-tokenizer-1" : "rumor-tokenizer-2");
  if (parts.patterns.size() != 1) out.varint(parts.patterns.size());
  for (const std::string& pattern : parts.patterns) out.text(pattern);
  out.u8(static_cast<std::uint8_t>(parts.form));
  out.u8(static_cast<std::uint8_t>(parts.whole_pieces));
  out.varint(parts.tokens.size());
  for (const std::string& token : parts.tokens) out.text(token);
  out.varint(parts.merges.size());
  for (const TokenMerge& merge : parts.merges) {
    out.u32(merge.left);
    out.u32(merge.right);
    out.u32(merge.merged);
  }
  std::vector<const AddedToken*> added;
  for (const AddedToken& token : parts.added) added.push_back(&token);
  std::sort(added.begin(), added.end(), [](const auto* a, const auto* b) { return a->id < b->id; });
  for (const AddedToken* token : added) {
    out.text(token->content);
    out.u32(token->id);
    out.u8(static_cast<std::uint8_t>(token->normalized));
  }
  return sha256(out.bytes());
}

}  // namespace

Tokenizer::Tokenizer(TokenizerParts parts, std::vector<SplitPattern> splits)
    : parts_(std::move(parts)),
      splits_(std::move(splits)),
      merger_(parts_.bytes, parts_.merges),
      hash_(hash_of(parts_)) {
  for (const AddedToken& token : parts_.added) {
    (token.normalized ? normalized_ : raw_).push_back(token);
    if (token.normalized) normalized_.back().content = normalized(token.content, parts_.form);
  }
  for (const auto& [tokens, starts] : {std::pair{&raw_, &raw_starts_}, {&normalized_, &normalized_starts_}}) {
    for (const AddedToken& token : *tokens)
      (*starts)[static_cast<unsigned char>(token.content.front())].push_back(&token);
    for (auto& same_start : *starts)
      std::stable_sort(same_start.begin(), same_start.end(), [](const AddedToken* a, const AddedToken* b) {
        return a->content.size() > b->content.size();
      });
  }
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(TokenizerParts parts) {
  std::vector<SplitPattern> splits;
  for (const std::string& pattern : parts.patterns) {
    auto split = SplitPattern::compile(pattern);
    if (!split) return split.error();
    splits.push_back(std::move(split).value());
  }
  return std::shared_ptr<const Tokenizer>(new Tokenizer(std::move(parts), std::move(splits)));
}

std::string_view Tokenizer::bytes_of(std::uint32_t token) const {
  return token < parts_.tokens.size() ? std::string_view(parts_.tokens[token]) : std::string_view();
}

std::optional<std::uint32_t> Tokenizer::beginning() const {
  for (const std::string_view name : {"<|begin_of_text|>", "<|endoftext|>"})
    for (const AddedToken& token : parts_.added)
      if (token.content == name) return token.id;
  return std::nullopt;
}

// The longest added token with which the text begins, or null.
const AddedToken* Tokenizer::token_at(const Starts& starts, std::string_view text) {
  for (const AddedToken* token : starts[static_cast<unsigned char>(text.front())])
    if (text.starts_with(token->content)) return token;
  return nullptr;
}

TokenEncoder::TokenEncoder(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {
  for (const SplitPattern& split : tokenizer_->splits_) matchers_.push_back(split.matcher());
}

Result<void> TokenEncoder::encode(std::string_view text, std::vector<std::uint32_t>& tokens,
                                  const Progress& progress) {
  if (const std::size_t bad = first_invalid_utf8(text); bad < text.size())
    return Error{Errc::corrupt, str("byte ", bad, " is no UTF-8; convert the text first, such as with iconv -t UTF-8")};
  done_ = told_ = 0;
  const Tokenizer& tokenizer = *tokenizer_;
  return cut(tokenizer.raw_starts_, text, tokens, [&](std::string_view raw) -> Result<void> {
    std::string composed;
    if (tokenizer.parts_.form != NormalForm::none) raw = composed = normalized(raw, tokenizer.parts_.form);
    return cut(tokenizer.normalized_starts_, raw, tokens,
               [&](std::string_view section) { return encode_section(section, 0, tokens, progress); });
  });
}

// Cuts out added tokens, and hands over the sections between them.
Result<void> TokenEncoder::cut(const Tokenizer::Starts& starts, std::string_view text,
                               std::vector<std::uint32_t>& tokens, const Section& section) {
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    const AddedToken* token = Tokenizer::token_at(starts, text.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    if (at > begin)
      if (auto done = section(text.substr(begin, at - begin)); !done) return done;
    tokens.push_back(token->id);
    at += token->content.size();
    begin = at;
  }
  return begin < text.size() ? section(text.substr(begin)) : Result<void>();
}

Result<void> TokenEncoder::encode_section(std::string_view text, std::size_t pattern,
                                          std::vector<std::uint32_t>& tokens, const Progress& progress) {
  return SplitPattern::split(*matchers_[pattern], text, [&](std::string_view piece) -> Result<void> {
    if (pattern + 1 < matchers_.size()) return encode_section(piece, pattern + 1, tokens, progress);
    if (piece.size() >= UINT32_MAX) return Error{Errc::limit, "the text has a piece of over 4 GB; split it"};
    encode_piece(piece, tokens);
    done_ += piece.size();
    if (progress && done_ - told_ >= progress_bytes) progress(told_ = done_);
    return {};
  });
}

void TokenEncoder::encode_piece(std::string_view piece, std::vector<std::uint32_t>& tokens) {
  const Tokenizer& tokenizer = *tokenizer_;
  if (piece.size() > known_piece_bytes_max && !tokenizer.parts_.whole_pieces) {
    tokenizer.merger_.merge(piece, memory_, tokens);
    return;
  }
  key_ = piece;
  if (const auto found = known_.find(key_); found != known_.end()) {
    tokens.insert(tokens.end(), found->second.begin(), found->second.end());
    return;
  }
  const std::size_t first = tokens.size();
  const auto& numbers = tokenizer.parts_.numbers;
  const auto whole = tokenizer.parts_.whole_pieces ? numbers.find(key_) : numbers.end();
  if (whole != numbers.end())
    tokens.push_back(whole->second);
  else
    tokenizer.merger_.merge(piece, memory_, tokens);
  if (piece.size() > known_piece_bytes_max) return;
  if (known_.size() == known_pieces_max) known_.clear();
  known_.emplace(key_, std::vector<std::uint32_t>(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end()));
}

}  // namespace rumor::models
