// GPT-2 token files: nanoGPT's and llm.c's.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "models/data/data_sources.h"
#include "models/data/mapped_file.h"
#include "models/data/token_array.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t token_header_bytes = 1024;
constexpr std::uint32_t gpt2_magic = 20'240'520, llama3_magic = 20'240'801, version = 1;

std::uint32_t word_at(BytesView bytes, std::size_t at) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + at, sizeof word);
  return word;
}

// Bytes of the header: none in nanoGPT's layout. Both magics would be tokens that GPT-2 does not have, so the
// two layouts cannot be taken for one another.
Result<std::size_t> header_of(BytesView bytes, const std::string& file) {
  const std::uint32_t magic = bytes.size() >= 4 ? word_at(bytes, 0) : 0;
  if (magic == llama3_magic)
    return damaged(file, 0, "tokens of Llama 3, of 32 bits; only GPT-2 tokens of 16 bits are read");
  if (magic != gpt2_magic) return std::size_t{0};
  if (bytes.size() < token_header_bytes)
    return damaged(file, bytes.size(), "the file ends inside its header of 1024 bytes");
  if (word_at(bytes, 4) != version)
    return damaged(file, 4, str("version ", word_at(bytes, 4), ", expected 1"));
  const std::uint64_t claimed = word_at(bytes, 8), present = (bytes.size() - token_header_bytes) / 2;
  if (claimed != present)
    return damaged(file, 8, str("the header claims ", claimed, " tokens, the file has ", present));
  return token_header_bytes;
}

// The index of the first token beyond the vocabulary, or the end.
std::size_t first_beyond(BytesView words) {
  constexpr std::size_t block = 4096;  // its maximum is found without a branch for each token
  std::uint16_t tokens[block];
  for (std::size_t at = 0; at < words.size(); at += 2 * block) {
    const std::size_t count = std::min(block, (words.size() - at) / 2);
    std::memcpy(tokens, words.data() + at, 2 * count);
    std::uint16_t most = 0;
    for (std::size_t i = 0; i < count; ++i) most = std::max(most, tokens[i]);
    if (most < gpt2_vocabulary) continue;
    const auto is_beyond = [](std::uint16_t token) { return token >= gpt2_vocabulary; };
    return at + 2 * static_cast<std::size_t>(std::find_if(tokens, tokens + count, is_beyond) - tokens);
  }
  return words.size();
}

Result<void> append_tokens(const std::string& path, TokenArray& all) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  const BytesView bytes = (*file)->bytes();
  const auto header = header_of(bytes, path);
  if (!header) return header.error();
  const BytesView words = bytes.subspan(*header);
  if (words.size() % 2 != 0) return damaged(path, bytes.size() - 1, "half a token; tokens are 16 bits each");
  if (const std::size_t at = first_beyond(words); at < words.size())
    return damaged(path, *header + at,
                   str("token ", words[at] | words[at + 1] << 8, ", but GPT-2 has ", gpt2_vocabulary,
                       " tokens; are these 16-bit GPT-2 tokens?"));
  all.append(*file, words, TokenArray::Width::word);
  return {};
}

}  // namespace

Result<std::shared_ptr<const DataSet>> load_token_data(const std::string& path, std::uint32_t context) {
  std::error_code ignored;
  if (path.empty() || !fs::exists(path, ignored))
    return Error{
        Errc::not_found,
        str(path.empty() ? "data.path is empty" : "no " + path,
            "; set data.path to a GPT-2 token file or to ",
            "a folder with *.bin files named after train and val, as nanoGPT's prepare.py writes them")};
  if (!fs::is_directory(path, ignored)) {
    TokenArray all;
    if (auto read = append_tokens(path, all); !read) return read.error();
    return hold_out(last_name(path), all, gpt2_vocabulary, context);
  }
  const auto files = files_in(path);
  if (!files) return files.error();
  TokenArray train, test;
  for (const std::string& file : *files) {
    const std::string name = last_name(file);
    if (!name.ends_with(".bin")) continue;
    TokenArray* part = name.find("val") != std::string::npos     ? &test
                       : name.find("train") != std::string::npos ? &train
                                                                 : nullptr;
    if (part == nullptr) continue;
    if (auto read = append_tokens(file, *part); !read) return read.error();
  }
  if (train.size() == 0 || test.size() == 0)
    return Error{Errc::not_found,
                 str(path, " has no *.bin file with ", train.size() == 0 ? "train" : "val",
                     " in its name, or an empty one; nanoGPT's and llm.c's scripts write both")};
  return make_windows(last_name(path), std::move(train), std::move(test), gpt2_vocabulary, context);
}

}  // namespace rumor::models
