// Writes the tokens of a text, one number a line, and the time that they took to stderr: token_ids.py compares them
// with those of Hugging Face's tokenizers. usage: token_ids TOKENIZER.json TEXT
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "models/tokenizer/tokenizer_json.h"

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: token_ids TOKENIZER.json TEXT\n", stderr), 2;
  const auto tokenizer = rumor::models::open_tokenizer(argv[1]);
  if (!tokenizer) return std::fprintf(stderr, "%s\n", tokenizer.error().text.c_str()), 1;
  std::ifstream in(argv[2], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::uint32_t> tokens;
  const auto begin = std::chrono::steady_clock::now();
  const auto encoded = rumor::models::TokenEncoder(*tokenizer).encode(text, tokens);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (!encoded) return std::fprintf(stderr, "%s\n", encoded.error().text.c_str()), 1;
  for (const std::uint32_t token : tokens) std::printf("%u\n", token);
  std::fprintf(stderr, "%zu bytes, %zu tokens, %.3f s\n", text.size(), tokens.size(), took.count());
  return 0;
}
