#include "tools/text/byte_pairs.h"

#include <algorithm>
#include <array>

#include "runtime/base/text.h"

namespace rumor::tools {
namespace {

constexpr std::size_t word_bytes_max = 512;

enum class Kind : std::uint8_t { letter, digit, space, sign };

struct Letter {
  Kind kind;
  std::size_t bytes;
};

struct Block {
  char32_t first, last;
  Kind kind;
};

// Characters beyond ASCII that are not letters.
constexpr std::array<Block, 15> unicode_blocks{{{0x85, 0x85, Kind::space},
                                        {0xa0, 0xa0, Kind::space},
                                        {0xaa, 0xaa, Kind::letter},
                                        {0xb2, 0xb3, Kind::digit},
                                        {0xb5, 0xb5, Kind::letter},
                                        {0xb9, 0xb9, Kind::digit},
                                        {0xba, 0xba, Kind::letter},
                                        {0xbc, 0xbe, Kind::digit},
                                        {0x80, 0xbf, Kind::sign},
                                        {0xd7, 0xd7, Kind::sign},
                                        {0xf7, 0xf7, Kind::sign},
                                        {0x300, 0x36f, Kind::sign},    // combining marks
                                        {0x2010, 0x2bff, Kind::sign},  // punctuation, currencies, arrows, drawings
                                        {0x3001, 0x3003, Kind::sign},
                                        {0x1f000, 0x1faff, Kind::sign}}};

Kind kind_of(char32_t code) {
  if (code == ' ' || (code >= '\t' && code <= '\r')) return Kind::space;
  if (code >= '0' && code <= '9') return Kind::digit;
  if ((code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z')) return Kind::letter;
  if (code < 0x80) return Kind::sign;
  const auto* const block =
      std::find_if(unicode_blocks.begin(), unicode_blocks.end(),
                   [&](const Block& b) { return b.first <= code && code <= b.last; });
  return block == unicode_blocks.end() ? Kind::letter : block->kind;
}

// The first character of UTF-8 text; a byte that belongs to no character is a sign.
Letter first_letter(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {kind_of(lead), 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  if (bytes == 1 || text.size() < bytes) return {Kind::sign, 1};
  char32_t code = lead & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return {Kind::sign, 1};
    code = code << 6 | (next & 0x3fu);
  }
  return {kind_of(code), bytes};
}

// Appends the tokens of one word.
Result<void> merge_word(const Vocabulary& vocabulary, std::string_view word, std::vector<models::Token>& tokens) {
  constexpr std::uint32_t none = UINT32_MAX;
  const auto token = [&](std::size_t begin, std::size_t end) {
    const auto found = vocabulary.find(word.substr(begin, end - begin));
    return found == vocabulary.end() ? none : found->second;
  };
  std::vector<std::size_t> cuts;  // piece i is from cuts[i] to cuts[i + 1]
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (token(i, i + 1) == none)
      return Error{Errc::usage, str("vocab.json has no token for byte ", int{static_cast<unsigned char>(word[i])},
                                    " of '", word, "'")};
    cuts.push_back(i);
  }
  cuts.push_back(word.size());
  for (;;) {
    std::uint32_t lowest = none;
    std::size_t between = 0;
    for (std::size_t i = 1; i + 1 < cuts.size(); ++i) {
      const std::uint32_t merged = token(cuts[i - 1], cuts[i + 1]);
      if (merged < lowest) lowest = merged, between = i;
    }
    if (lowest == none) break;
    cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(between));
  }
  for (std::size_t i = 1; i < cuts.size(); ++i)
    tokens.push_back(static_cast<models::Token>(token(cuts[i - 1], cuts[i])));
  return {};
}

}  // namespace

std::size_t first_word(std::string_view text) {
  if (text.empty()) return 0;
  for (const std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.substr(0, contraction.size()) == contraction) return contraction.size();
  const bool has_space = text[0] == ' ' && text.size() > 1 && first_letter(text.substr(1)).kind != Kind::space;
  std::size_t end = has_space ? 1 : 0, last = 0;
  const Kind kind = first_letter(text.substr(end)).kind;
  while (end < text.size() && end < word_bytes_max) {
    const Letter letter = first_letter(text.substr(end));
    if (letter.kind != kind) break;
    last = letter.bytes;
    end += last;
  }
  const bool leads_on = kind == Kind::space && end < text.size() && end > last;
  return leads_on ? end - last : end;
}

Result<std::vector<models::Token>> merge_pairs(const Vocabulary& vocabulary, std::string_view text) {
  std::vector<models::Token> tokens;
  while (const std::size_t length = first_word(text)) {
    if (auto merged = merge_word(vocabulary, text.substr(0, length), tokens); !merged) return merged.error();
    text.remove_prefix(length);
  }
  return tokens;
}

}  // namespace rumor::tools
