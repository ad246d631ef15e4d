// tokenizer.json: whatever is accepted encodes a text into tokens below its vocabulary.
#include "models/tokenizer/tokenizer_json.h"
#include "runtime/base/check.h"
#include "tests/fuzz/target.h"

FUZZ_TARGET(tokenizer) {
  using namespace rumor::models;
  auto parts = parse_tokenizer({reinterpret_cast<const char*>(data), size}, "input");
  if (!parts) {
    RUMOR_CHECK(!parts.error().text.empty());
    return 0;
  }
  const auto tokenizer = Tokenizer::create(std::move(parts).value());
  if (!tokenizer) return 0;
  const std::string text = "It's 1234 caf\u00e9  e\u0301\n\n <|end|> aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\u4f60";
  std::vector<std::uint32_t> tokens;
  if (!TokenEncoder(*tokenizer).encode(text, tokens)) return 0;
  for (const std::uint32_t token : tokens) RUMOR_CHECK(token < (*tokenizer)->vocabulary());
  return 0;
}
