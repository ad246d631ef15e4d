// A text as the tokens of a tokenizer.
#include <algorithm>
#include <utility>

#include "models/data/data_sources.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

// The most tokens that a vocabulary of 16-bit numbers has.
constexpr std::uint32_t word_vocabulary_max = 1u << 16;

template <class Word>
void append_words(const std::vector<Token>& tokens, TokenArray::Width width, TokenArray& all) {
  auto words = std::make_shared<std::vector<Word>>(tokens.size());
  std::transform(tokens.begin(), tokens.end(), words->begin(), [](Token token) { return static_cast<Word>(token); });
  all.append(words, {reinterpret_cast<const std::uint8_t*>(words->data()), words->size() * sizeof(Word)}, width);
}

}  // namespace

Result<TokenArray> encode_texts(std::vector<TextFile> files, const std::shared_ptr<const Tokenizer>& tokenizer,
                                const EncodingProgress& progress) {
  TokenEncoder encoder(tokenizer);
  TokenArray all;
  std::uint64_t before = 0, total = 0;
  for (const TextFile& file : files) total += file.bytes.size();
  for (TextFile& file : files) {
    std::vector<Token> tokens;
    const std::string_view text{reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
    const auto encoded = encoder.encode(text, tokens, [&](std::uint64_t bytes) {
      if (progress) progress(before + bytes, total);
    });
    if (!encoded) return Error{encoded.error().code, str(file.name, ": ", encoded.error().text)};
    if (tokenizer->vocabulary() <= word_vocabulary_max)
      append_words<std::uint16_t>(tokens, TokenArray::Width::word, all);
    else
      append_words<Token>(tokens, TokenArray::Width::wide, all);
    before += file.bytes.size();
    file.owner.reset();
  }
  return all;
}

}  // namespace rumor::models
