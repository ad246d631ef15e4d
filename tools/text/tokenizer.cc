#include "tools/text/tokenizer.h"

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/data/token_array.h"
#include "models/tokenizer/byte_letters.h"
#include "models/tokenizer/tokenizer_json.h"
#include "runtime/base/text.h"
#include "tools/words/command.h"

namespace rumor::tools {

Result<void> Tokenizer::open_file(const std::string& path) {
  auto opened = models::open_tokenizer(path);
  if (!opened) return opened.error();
  file_ = std::move(opened).value();
  kind_ = Kind::file;
  if (file_->vocabulary() <= vocabulary_) return {};
  return Error{Errc::mismatch, str(path, " has ", file_->vocabulary(), " tokens and the model ", vocabulary_,
                                   "; it is the tokenizer of another model")};
}

Result<Tokenizer> Tokenizer::open(const std::string& directory, std::uint32_t vocabulary, const std::string& file) {
  Tokenizer tokenizer;
  tokenizer.vocabulary_ = vocabulary;
  const std::string beside = directory + "/tokenizer.json";
  std::error_code ignored;
  if (!file.empty() || std::filesystem::exists(beside, ignored)) {
    if (auto opened = tokenizer.open_file(file.empty() ? beside : file); !opened) return opened.error();
    return tokenizer;
  }
  if (vocabulary == 256) return tokenizer;  // bytes
  const std::string path = directory + "/vocab.json";
  const auto text = read_text_file(path);
  if (!text) {
    tokenizer.kind_ = Kind::numbers;
    tokenizer.note_ = str("there is no ", path, ": tokens are written and read as numbers");
    return tokenizer;
  }
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object())
    return Error{Errc::corrupt, str(path, " is no JSON object of tokens and their numbers")};
  tokenizer.kind_ = Kind::pieces;
  tokenizer.pieces_.resize(vocabulary);
  for (const auto& [spelled, number] : json.items()) {
    if (!number.is_number_unsigned() || number >= vocabulary)
      return Error{Errc::corrupt, str(path, ": token ", spelled, " has no number below ", vocabulary)};
    const auto token = number.get<models::Token>();
    tokenizer.pieces_[token] = models::bytes_of_letters(spelled);
    tokenizer.tokens_[tokenizer.pieces_[token]] = token;
  }
  return tokenizer;
}

Result<std::vector<models::Token>> Tokenizer::encode(std::string_view text) const {
  std::vector<models::Token> tokens;
  if (kind_ == Kind::bytes) {
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  if (kind_ == Kind::pieces) return merge_pairs(tokens_, text);
  if (kind_ == Kind::file) {
    if (auto encoded = models::TokenEncoder(file_).encode(text, tokens); !encoded)
      return Error{Errc::usage, "--prompt: " + encoded.error().text};
    return tokens;
  }
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    std::uint32_t token = 0;
    const auto read = std::from_chars(at, end, token);
    if (read.ec != std::errc() || token >= vocabulary_)
      return Error{Errc::usage, str("--prompt: this model reads numbers from 0 to ", vocabulary_ - 1,
                                    ", such as \"15496 995\"; a vocab.json beside it would make them text")};
    tokens.push_back(static_cast<models::Token>(token));
    at = read.ptr;
  }
  return tokens;
}

std::string Tokenizer::decode(models::Token token) const {
  if (kind_ == Kind::bytes) return std::string(1, static_cast<char>(token));
  if (kind_ == Kind::file) return std::string(file_->bytes_of(token));
  return kind_ == Kind::pieces ? pieces_[token] : str(" ", token);
}

models::Token Tokenizer::beginning() const {
  if (kind_ == Kind::bytes) return '\n';
  if (kind_ == Kind::file) return file_->beginning().value_or(file_->token_of('\n'));
  return vocabulary_ > models::gpt2_end_of_text ? static_cast<models::Token>(models::gpt2_end_of_text) : 0;
}

}  // namespace rumor::tools
