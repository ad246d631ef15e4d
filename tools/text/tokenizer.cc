#include "tools/text/tokenizer.h"

#include <charconv>
#include <map>

#include <nlohmann/json.hpp>

#include "models/data/token_array.h"
#include "runtime/base/text.h"
#include "tools/words/command.h"

namespace rumor::tools {
namespace {

// GPT-2 writes a byte as a letter: printable ones as themselves, the others as the code points from 256 on,
// in order.
std::map<char32_t, char> bytes_by_letter() {
  std::map<char32_t, char> bytes;
  char32_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    bytes[is_itself ? static_cast<char32_t>(byte) : next++] = static_cast<char>(byte);
  }
  return bytes;
}

// From that spelling, in UTF-8, to bytes. Letters that spell no byte, as in special tokens, stay as they are.
std::string bytes_of(const std::string& spelled) {
  static const std::map<char32_t, char> letters = bytes_by_letter();
  std::string out;
  for (std::size_t at = 0; at < spelled.size();) {
    const auto lead = static_cast<unsigned char>(spelled[at]);
    const bool is_pair = (lead & 0xe0) == 0xc0 && at + 1 < spelled.size();
    const char32_t letter =
        is_pair ? (lead & 0x1fu) << 6 | (static_cast<unsigned char>(spelled[at + 1]) & 0x3fu) : lead;
    const auto found = letters.find(letter);
    out += found == letters.end() ? spelled[at] : found->second;
    at += found != letters.end() && is_pair ? 2 : 1;
  }
  return out;
}

}  // namespace

Result<Tokenizer> Tokenizer::open(const std::string& directory, std::uint32_t vocabulary) {
  Tokenizer tokenizer;
  tokenizer.vocabulary_ = vocabulary;
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
    tokenizer.pieces_[token] = bytes_of(spelled);
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
  return kind_ == Kind::pieces ? pieces_[token] : str(" ", token);
}

models::Token Tokenizer::beginning() const {
  if (kind_ == Kind::bytes) return '\n';
  return vocabulary_ > models::gpt2_end_of_text ? static_cast<models::Token>(models::gpt2_end_of_text) : 0;
}

}  // namespace rumor::tools
