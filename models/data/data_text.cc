// Text as bytes or tokens, and sets of windows of it.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "models/data/data_sources.h"
#include "models/data/idx.h"
#include "models/data/mapped_file.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

namespace fs = std::filesystem;

struct Corpus {
  const char* name;  // also of the Debian and Ubuntu package
  const char* file;
};
constexpr Corpus bible{"bible-kjv-text", "/usr/lib/bible.data"};
constexpr Corpus dictionary{"dict-gcide", "/usr/share/dictd/gcide.dict.dz"};

Error no_text(const std::string& path) {
  return Error{Errc::not_found,
               str("no text at ", path, "; set data.path to a file or a folder of text files, or to ",
                   bible.name, " or ", dictionary.name)};
}

TextFile owned_text(const std::string& name, Bytes bytes) {
  const auto owner = std::make_shared<const Bytes>(std::move(bytes));
  return {name, owner, *owner};
}

// Plain files are mapped; gzip files are unpacked into memory.
Result<TextFile> read_text(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return file.error();
  const BytesView bytes = (*file)->bytes();
  if (bytes.size() < 2 || bytes[0] != 0x1f || bytes[1] != 0x8b) return TextFile{path, *file, bytes};
  auto unpacked = read_data_file(path);
  if (!unpacked) return unpacked.error();
  return owned_text(path, std::move(*unpacked));
}

Result<TextFile> read_corpus(const Corpus& corpus) {
  std::error_code ignored;
  if (!fs::is_regular_file(corpus.file, ignored))
    return Error{Errc::not_found, str("no ", corpus.file, "; run 'apt-get install ", corpus.name,
                                      "', or set data.path to a file or a folder of text files")};
  if (corpus.name != std::string_view(bible.name)) return read_text(corpus.file);
  const auto file = MappedFile::open(corpus.file);
  if (!file) return file.error();
  auto text = unpack_bible((*file)->bytes(), corpus.file);
  if (!text) return text.error();
  return owned_text(corpus.file, std::move(*text));
}

// The files of a text, none of them empty.
Result<std::vector<TextFile>> read_texts(const std::string& wanted) {
  std::vector<TextFile> texts;
  const auto add = [&texts](Result<TextFile> text) -> Result<void> {
    if (!text) return text.error();
    if (!text->bytes.empty()) texts.push_back(std::move(*text));
    return {};
  };
  std::error_code ignored;
  for (const Corpus& corpus : {bible, dictionary})
    if (wanted == corpus.name)
      if (auto read = add(read_corpus(corpus)); !read) return read.error();
  if (!texts.empty()) return texts;
  if (!fs::exists(wanted, ignored)) return no_text(wanted);
  auto files = fs::is_directory(wanted, ignored) ? files_in(wanted) : std::vector<std::string>{wanted};
  if (!files) return files.error();
  for (const std::string& file : *files)
    if (auto read = add(read_text(file)); !read) return read.error();
  return texts;
}

}  // namespace

Result<std::vector<std::string>> files_in(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (name.front() != '.' && entry->is_regular_file(failure)) files.push_back(entry->path().string());
  }
  if (failure) return Error{Errc::io, str("cannot read ", directory, ": ", failure.message())};
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::shared_ptr<const DataSet>> load_text_data(const DataConfig& config, std::uint32_t context) {
  RUMOR_CHECK(config.tokens.empty() || config.tokenizer != nullptr);
  const std::string wanted = config.path.empty() ? bible.name : config.path;
  auto texts = read_texts(wanted);
  if (!texts) return texts.error();
  if (config.tokenizer != nullptr) {
    const auto tokens = encode_texts(std::move(*texts), config.tokenizer, config.progress);
    if (!tokens) return tokens.error();
    return hold_out(last_name(wanted), *tokens, config.tokenizer->vocabulary(), context);
  }
  TokenArray all;
  for (const TextFile& text : *texts) all.append(text.owner, text.bytes, TokenArray::Width::byte);
  return hold_out(last_name(wanted), all, byte_vocabulary, context);
}

std::string last_name(const std::string& path) {
  const fs::path whole(path);
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

Result<std::shared_ptr<const DataSet>> hold_out(std::string name, const TokenArray& all,
                                                std::uint32_t vocabulary, std::uint32_t context) {
  const std::uint64_t row = std::uint64_t{context} + 1;
  if (all.size() < 2 * row)
    return Error{Errc::usage,
                 str(name, " has ", all.size(), " tokens, too few for two rows of model.context + 1 = ", row,
                     "; lower model.context or take a longer text")};
  const std::uint64_t held = std::max(row, std::min(all.size() / 10, held_out_tokens_max));
  return make_windows(std::move(name), all.slice(0, all.size() - held), all.slice(all.size() - held, held),
                      vocabulary, context);
}

Result<std::shared_ptr<const DataSet>> make_windows(std::string name, TokenArray train, TokenArray test,
                                                    std::uint32_t vocabulary, std::uint32_t context) {
  if (context == 0) return Error{Errc::usage, "model.context must be at least 1 for a text"};
  for (const TokenArray* part : {&train, &test}) {
    if (part->size() <= context)
      return Error{Errc::usage,
                   str("the ", part == &train ? "training" : "validation", " part of ", name, " has ",
                       part->size(), " tokens, fewer than a row of model.context + 1 = ", context + 1)};
    if ((part->size() - 1) / context > UINT32_MAX)
      return Error{Errc::limit, str(name, " has more than ", UINT32_MAX, " rows; raise model.context")};
  }
  DataSet data;
  data.name = std::move(name);
  data.vocabulary = vocabulary;
  data.context = context;
  const std::uint64_t rows = (test.size() - 1) / context;
  data.test_windows =
      static_cast<std::uint32_t>(std::min(rows, std::max<std::uint64_t>(1, evaluated_tokens_max / context)));
  data.train_tokens = std::move(train);
  data.test_tokens = std::move(test);
  return std::make_shared<const DataSet>(std::move(data));
}

}  // namespace rumor::models
