#include "models/tokenizer/tokenizer_json.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/tokenizer/byte_letters.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

using nlohmann::json;

// The ByteLevel pre-tokenizer has this pattern and does not write it down.
constexpr const char* gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// Steps of a Sequence: far above those of known files.
constexpr std::size_t steps_max = 32;

// A member, or null when there is none.
const json& member(const json& object, const char* name) {
  static const json none;
  if (!object.is_object()) return none;
  const auto at = object.find(name);
  return at == object.end() ? none : *at;
}

// The text of a value, cut for an error.
std::string shown(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 80);
}

bool is_off(const json& value) { return value.is_null() || value == false || value == ""; }

// Numbers by the spelling of their tokens, as in the file.
using Spelled = std::unordered_map<std::string, std::uint32_t>;

class TokenizerReader {
 public:
  TokenizerReader(const json& root, const std::string& source) : root_(root), source_(source) {}

  Result<TokenizerParts> read() {
    for (const auto step : {&TokenizerReader::read_model, &TokenizerReader::read_vocabulary,
                            &TokenizerReader::read_merges, &TokenizerReader::read_pre_tokenizer,
                            &TokenizerReader::read_added, &TokenizerReader::read_rest})
      if (auto done = (this->*step)(); !done) return done.error();
    return std::move(parts_);
  }

 private:
  Error corrupt(const std::string& why) const { return Error{Errc::corrupt, str(source_, ": ", why)}; }
  Error unsupported(const std::string& what) const {
    return Error{Errc::mismatch, str(source_, ": ", what, " is not supported; byte-level BPE such as that of GPT-2, "
                                     "Llama 3 and Qwen2 is")};
  }

  // The object may have only harmless values under these names.
  Result<void> all_off(const json& object, const char* what, std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (const json& value = member(object, name); !is_off(value))
        return unsupported(str(what, " with ", name, " = ", shown(value)));
    return {};
  }

  Result<void> read_model() {
    const json& model = member(root_, "model");
    if (!model.is_object()) return corrupt("there is no object model; is it a tokenizer.json?");
    const json& type = member(model, "type");  // older files do not have it
    const bool is_bpe = type == "BPE" || (type.is_null() && model.contains("merges"));
    if (!is_bpe) return unsupported(str("the model ", shown(type)));
    if (const json& dropout = member(model, "dropout"); !is_off(dropout) && dropout != 0)
      return unsupported(str("a model with dropout = ", shown(dropout)));
    parts_.whole_pieces = member(model, "ignore_merges") == true;
    return all_off(model, "a model", {"continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"});
  }

  Result<void> add_token(std::uint64_t number, std::string bytes) {
    if (number >= parts_.tokens.size()) parts_.tokens.resize(number + 1);
    parts_.tokens[number] = std::move(bytes);
    return {};
  }

  // The number of a token, below token_numbers_max.
  std::optional<std::uint32_t> number_of(const json& value) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= token_numbers_max) return std::nullopt;
    return value.get<std::uint32_t>();
  }

  Result<void> read_vocabulary() {
    const json& vocab = member(member(root_, "model"), "vocab");
    if (!vocab.is_object()) return corrupt("the model has no object vocab");
    for (const auto& [spelled, value] : vocab.items()) {
      const auto number = number_of(value);
      if (!number)
        return corrupt(str("token '", spelled.substr(0, 80), "' has no number from 0 to ", token_numbers_max - 1));
      if (spelled.empty()) return corrupt("vocab has an empty token");
      if (*number < parts_.tokens.size() && !parts_.tokens[*number].empty())
        return corrupt(str("two tokens have the number ", *number));
      std::string bytes = bytes_of_letters(spelled);
      parts_.numbers.emplace(bytes, *number);
      if (auto added = add_token(*number, std::move(bytes)); !added) return added;
      spelled_.emplace(spelled, *number);
    }
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = spelled_.find(letter_of_byte(static_cast<unsigned char>(byte)));
      if (found == spelled_.end())
        return corrupt(str("vocab has no token for byte ", byte, "; is its tokenizer a byte-level one?"));
      parts_.bytes[static_cast<std::size_t>(byte)] = found->second;
    }
    return {};
  }

  // The two halves of a merge: "a b", or ["a", "b"] in newer files.
  static std::optional<std::pair<std::string, std::string>> halves_of(const json& merge) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
      return std::pair(merge[0].get<std::string>(), merge[1].get<std::string>());
    if (!merge.is_string()) return std::nullopt;
    const auto& text = merge.get_ref<const std::string&>();
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) return std::nullopt;
    return std::pair(text.substr(0, space), text.substr(space + 1));
  }

  Result<void> read_merges() {
    const json& merges = member(member(root_, "model"), "merges");
    if (!merges.is_array()) return corrupt("the model has no list merges");
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const auto halves = halves_of(merges[rank]);
      if (!halves) return corrupt(str("merge ", rank, " is not two tokens: ", shown(merges[rank])));
      const auto left = spelled_.find(halves->first), right = spelled_.find(halves->second);
      const auto merged = spelled_.find(halves->first + halves->second);
      if (left == spelled_.end() || right == spelled_.end() || merged == spelled_.end())
        return corrupt(str("merge ", rank, ", ", shown(merges[rank]), ", has a token that is not in vocab"));
      parts_.merges.push_back({left->second, right->second, merged->second});
    }
    return {};
  }

  Result<void> read_byte_level(const json& step) {
    if (member(step, "type") != "ByteLevel") return unsupported(str("the pre-tokenizer ", shown(member(step, "type"))));
    if (member(step, "add_prefix_space") == true) return unsupported("a pre-tokenizer with add_prefix_space = true");
    const json& own = member(step, "use_regex");
    if (own.is_null() || own == true) parts_.patterns.emplace_back(gpt2_pattern);
    if (parts_.patterns.empty()) return unsupported("a ByteLevel pre-tokenizer without a pattern");
    return {};
  }

  Result<void> read_split(const json& step) {
    if (member(step, "type") == "Digits") {
      parts_.patterns.emplace_back(member(step, "individual_digits") == true ? "\\p{N}" : "\\p{N}+");
      return {};
    }
    if (member(step, "type") != "Split") return unsupported(str("the pre-tokenizer ", shown(member(step, "type"))));
    if (member(step, "behavior") != "Isolated")
      return unsupported(str("a Split with behavior = ", shown(member(step, "behavior"))));
    if (!is_off(member(step, "invert"))) return unsupported("a Split with invert = true");
    const json& pattern = member(member(step, "pattern"), "Regex");
    if (!pattern.is_string()) return unsupported(str("a Split by ", shown(member(step, "pattern"))));
    parts_.patterns.push_back(pattern.get<std::string>());
    return {};
  }

  Result<void> read_pre_tokenizer() {
    const json& whole = member(root_, "pre_tokenizer");
    if (whole.is_null()) return unsupported("a file without a pre_tokenizer");
    if (member(whole, "type") != "Sequence") return read_byte_level(whole);
    const json& steps = member(whole, "pretokenizers");
    if (!steps.is_array() || steps.empty() || steps.size() > steps_max)
      return unsupported(str("a Sequence without a list of 1 to ", steps_max, " pre-tokenizers"));
    for (std::size_t i = 0; i + 1 < steps.size(); ++i)
      if (auto split = read_split(steps[i]); !split) return split;
    return read_byte_level(steps.back());
  }

  Result<void> read_added() {
    const json& list = member(root_, "added_tokens");
    if (list.is_null()) return {};
    if (!list.is_array()) return corrupt("added_tokens is no list");
    for (const json& one : list) {
      const json& content = member(one, "content");
      const auto number = number_of(member(one, "id"));
      if (!content.is_string() || !number)
        return corrupt(str("an added token has no content, or no number from 0 to ", token_numbers_max - 1, ": ",
                           shown(one)));
      if (auto off = all_off(one, "an added token", {"single_word", "lstrip", "rstrip"}); !off) return off;
      const auto& text = content.get_ref<const std::string&>();
      if (text.empty()) continue;
      parts_.added.push_back({text, *number, member(one, "normalized") == true});
      if (auto added = add_token(*number, text); !added) return added;
    }
    return {};
  }

  Result<void> read_normalizer(const json& normalizer) {
    const json& type = member(normalizer, "type");
    if (normalizer.is_null()) return {};
    if (type == "NFC" || type == "NFKC") {
      parts_.form = type == "NFC" ? NormalForm::nfc : NormalForm::nfkc;
      return {};
    }
    const json& steps = member(normalizer, "normalizers");
    if (type != "Sequence" || !steps.is_array()) return unsupported(str("the normalizer ", shown(type)));
    if (steps.size() > 1) return unsupported("a Sequence of several normalizers");
    if (steps.empty()) return {};
    if (member(steps[0], "type") == "Sequence") return unsupported("a Sequence of normalizers within another");
    return read_normalizer(steps[0]);
  }

  Result<void> read_rest() {
    if (auto read = read_normalizer(member(root_, "normalizer")); !read) return read;
    const json& decoder = member(root_, "decoder");
    if (!decoder.is_null() && member(decoder, "type") != "ByteLevel")
      return unsupported(str("the decoder ", shown(member(decoder, "type"))));
    return {};
  }

  const json& root_;
  const std::string& source_;
  TokenizerParts parts_;
  Spelled spelled_;
};

}  // namespace

Result<TokenizerParts> parse_tokenizer(std::string_view text, const std::string& source) {
  const json root = json::parse(text.begin(), text.end(), nullptr, false);
  if (!root.is_object()) return Error{Errc::corrupt, source + " is not a JSON object"};
  return TokenizerReader(root, source).read();
}

Result<std::shared_ptr<const Tokenizer>> open_tokenizer(const std::string& path) {
  std::error_code failure;
  const std::uintmax_t size = std::filesystem::file_size(path, failure);
  if (failure)
    return Error{failure == std::errc::no_such_file_or_directory ? Errc::not_found : Errc::io,
                 str("cannot read the tokenizer ", path, ": ", failure.message())};
  if (size > tokenizer_bytes_max)
    return Error{Errc::corrupt, str(path, " has ", size, " bytes, more than a tokenizer.json may have")};
  std::string text(static_cast<std::size_t>(size), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(size));
  if (!in) return Error{Errc::io, str("cannot read the tokenizer ", path, ": it ended early or may not be read")};
  auto parts = parse_tokenizer(text, path);
  if (!parts) return parts.error();
  auto tokenizer = Tokenizer::create(std::move(parts).value());
  if (!tokenizer) return Error{tokenizer.error().code, str(path, ": ", tokenizer.error().text)};
  return tokenizer;
}

}  // namespace rumor::models
