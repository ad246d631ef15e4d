// Tokenizers out of tokenizer.json: the same tokens as Hugging Face's tokenizers (golden_tokenizer.py), their bytes,
// and refusals that name what is not supported.
#include "models/tokenizer/tokenizer.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "models/data/data_sources.h"
#include "models/data/dataset.h"
#include "models/tokenizer/byte_letters.h"
#include "models/tokenizer/tokenizer_json.h"
#include "models/tokenizer/unicode.h"
#include "tests/unit/models/scratch.h"
#include "tests/unit/models/weights/golden_folder.h"

namespace rumor::models {
namespace {

std::string golden_tokenizer(const std::string& name) {
  return std::string(golden_folder) + "/../../tokenizer/golden/" + name;
}

nlohmann::json golden_json(const std::string& name) {
  std::ifstream in(golden_tokenizer(name));
  return nlohmann::json::parse(in);
}

std::vector<std::uint32_t> tokens_of(const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& text) {
  std::vector<std::uint32_t> tokens;
  BOOST_REQUIRE(TokenEncoder(tokenizer).encode(text, tokens).ok());
  return tokens;
}

std::shared_ptr<const Tokenizer> tokenizer_from(const nlohmann::json& file) {
  auto parts = parse_tokenizer(file.dump(), "t.json");
  BOOST_REQUIRE(parts.ok());
  return Tokenizer::create(std::move(parts).value()).value();
}

// The error of reading Llama 3's file with one change.
std::string tokenizer_refusal(const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json file = golden_json("llama3.json");
  change(file);
  auto parts = parse_tokenizer(file.dump(), "t.json");
  if (!parts) return parts.error().text;
  const auto tokenizer = Tokenizer::create(std::move(parts).value());
  return tokenizer ? "" : tokenizer.error().text;
}

const std::string not_supported = " is not supported; byte-level BPE such as that of GPT-2, Llama 3 and Qwen2 is";

}  // namespace

BOOST_AUTO_TEST_SUITE(tokenizer)

BOOST_AUTO_TEST_CASE(tokens_are_those_of_hugging_face) {
  const nlohmann::json expected = golden_json("expected.json");
  for (const char* kind : {"gpt2", "llama3", "qwen2", "deepseek", "smollm"}) {
    const auto tokenizer = open_tokenizer(golden_tokenizer(std::string(kind) + ".json")).value();
    BOOST_TEST(tokenizer->vocabulary() == 333u);
    BOOST_TEST((tokenizer->beginning() == 330u));
    for (std::size_t i = 0; i < expected["texts"].size(); ++i) {
      const auto text = expected["texts"][i].get<std::string>();
      const auto tokens = tokens_of(tokenizer, text);
      BOOST_TEST((tokens == expected["tokens"][kind][i].get<std::vector<std::uint32_t>>()), kind << ": " << text);
      std::string again;
      for (const std::uint32_t token : tokens) again += tokenizer->bytes_of(token);
      const NormalForm form = kind == std::string("qwen2")    ? NormalForm::nfc
                              : kind == std::string("smollm") ? NormalForm::nfkc
                                                              : NormalForm::none;
      BOOST_TEST(normalized(again, form) == normalized(text, form));  // an added token's bytes are the file's
    }
  }
}

// With as many pieces of one letter each, and in one piece: merging takes no quadratic time.
BOOST_AUTO_TEST_CASE(a_megabyte_without_a_space_is_encoded_at_once) {
  nlohmann::json file = golden_json("llama3.json");
  std::string longest = "a";
  for (std::uint32_t number = 400; longest.size() < 1024; ++number) {
    file["model"]["merges"].push_back({longest, longest});
    longest += longest;
    file["model"]["vocab"][longest] = number;
  }
  const auto tokens = tokens_of(tokenizer_from(file), std::string(1 << 20, 'a') + "aaa");
  BOOST_REQUIRE(tokens.size() == 1026u);
  BOOST_TEST(tokens.front() == 409u);
  BOOST_TEST(tokens[1024] == 400u);
}

BOOST_AUTO_TEST_CASE(a_text_that_is_no_utf8_is_refused) {
  TokenEncoder encoder(open_tokenizer(golden_tokenizer("gpt2.json")).value());
  std::vector<std::uint32_t> tokens;
  for (const char* bad : {"abc\xff", "abc\xc3", "abc\xed\xa0\x80", "abc\xc0\x80", "abc\xf5\x80\x80\x80"}) {
    const auto refused = encoder.encode(bad, tokens);
    BOOST_REQUIRE(!refused.ok());
    BOOST_TEST(refused.error().text ==
               "byte 3 is no UTF-8; convert the text first, such as with iconv -t UTF-8");
  }
  BOOST_TEST(tokens.empty());
}

BOOST_AUTO_TEST_CASE(bytes_and_letters) {
  BOOST_TEST(bytes_of_letters("\u0120the\u010a") == " the\n");
  for (int byte = 0; byte < 256; ++byte)
    BOOST_TEST(bytes_of_letters(letter_of_byte(static_cast<unsigned char>(byte))) ==
               std::string(1, static_cast<char>(byte)));
  BOOST_TEST(bytes_of_letters("\u4f60") == "\u4f60");  // no byte's letter
}

BOOST_AUTO_TEST_CASE(what_is_not_supported_is_named) {
  using nlohmann::json;
  const auto fault = [](const std::function<void(json&)>& change) { return tokenizer_refusal(change); };
  BOOST_TEST(fault([](json&) {}) == "");
  BOOST_TEST(fault([](json& f) { f["model"]["type"] = "Unigram"; }) == "t.json: the model \"Unigram\"" + not_supported);
  BOOST_TEST(fault([](json& f) { f["normalizer"] = {{"type", "Lowercase"}}; }) ==
             "t.json: the normalizer \"Lowercase\"" + not_supported);
  BOOST_TEST(fault([](json& f) { f["pre_tokenizer"] = {{"type", "Metaspace"}}; }) ==
             "t.json: the pre-tokenizer \"Metaspace\"" + not_supported);
  BOOST_TEST(fault([](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed"; }) ==
             "t.json: a Split with behavior = \"Removed\"" + not_supported);
  BOOST_TEST(fault([](json& f) { f["decoder"] = {{"type", "WordPiece"}}; }) ==
             "t.json: the decoder \"WordPiece\"" + not_supported);
  BOOST_TEST(fault([](json& f) { f["model"]["byte_fallback"] = true; }) ==
             "t.json: a model with byte_fallback = true" + not_supported);
  BOOST_TEST(fault([](json& f) { f["added_tokens"][0]["lstrip"] = true; }) ==
             "t.json: an added token with lstrip = true" + not_supported);
  BOOST_TEST(fault([](json& f) { f["normalizer"]["normalizers"] = {{{"type", "NFC"}}, {{"type", "NFKC"}}},
                                 f["normalizer"]["type"] = "Sequence"; }) ==
             "t.json: a Sequence of several normalizers" + not_supported);
  BOOST_TEST(fault([](json& f) { f["pre_tokenizer"]["pretokenizers"].erase(1); }) ==
             "t.json: the pre-tokenizer \"Split\"" + not_supported);
  BOOST_TEST(fault([](json& f) { f["pre_tokenizer"]["pretokenizers"].erase(0); }) ==
             "t.json: a ByteLevel pre-tokenizer without a pattern" + not_supported);
  BOOST_TEST(fault([](json& f) { f["pre_tokenizer"]["pretokenizers"] = json::array(); }) ==
             "t.json: a Sequence without a list of 1 to 32 pre-tokenizers" + not_supported);
  const auto pattern = [&](const char* regex) {
    return fault([&](json& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = regex; });
  };
  BOOST_TEST(pattern("a(").starts_with("the pattern of the pre-tokenizer cannot be read: "));
  BOOST_TEST(pattern("a*") == "the pattern of the pre-tokenizer matches the empty text");
  BOOST_TEST(pattern("[a&&[^b]]").ends_with("has a class within a class, which is not supported"));
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_named) {
  using nlohmann::json;
  const auto fault = [](const std::function<void(json&)>& change) { return tokenizer_refusal(change); };
  BOOST_TEST(parse_tokenizer("[", "t.json").error().text == "t.json is not a JSON object");
  BOOST_TEST(parse_tokenizer("{}", "t").error().text == "t: there is no object model; is it a tokenizer.json?");
  BOOST_TEST(fault([](json& f) { f["model"]["vocab"].erase("a"); }) ==
             "t.json: vocab has no token for byte 97; is its tokenizer a byte-level one?");
  BOOST_TEST(fault([](json& f) { f["model"]["vocab"]["a"] = 5; }) == "t.json: two tokens have the number 5");
  BOOST_TEST(fault([](json& f) { f["model"]["vocab"]["a"] = 1 << 20; }) ==
             "t.json: token 'a' has no number from 0 to 1048575");
  BOOST_TEST(fault([](json& f) { f["model"]["merges"][3] = "a b c"; }) ==
             "t.json: merge 3 is not two tokens: \"a b c\"");
  BOOST_TEST(fault([](json& f) { f["model"]["merges"][3] = {"a", "nothing"}; }) ==
             "t.json: merge 3, [\"a\",\"nothing\"], has a token that is not in vocab");
  BOOST_TEST((open_tokenizer("/nonexistent/t.json").error().code == Errc::not_found));
}

BOOST_AUTO_TEST_CASE(a_text_becomes_tokens) {
  const Scratch scratch;
  DataConfig config{.kind = "text", .path = scratch / "texts", .tokens = golden_tokenizer("gpt2.json")};
  std::string one, two;
  for (int i = 0; i < 300; ++i) one += "the other thing <|endoftext|>";
  for (int i = 0; i < 50; ++i) two += "it's 12 caf\u00e9s ";
  scratch.write("texts/1", std::string_view(one));
  scratch.write("texts/2", std::string_view(two));
  BOOST_REQUIRE(open_tokenizer_of(config).ok());
  const auto data = load_data(config, 8).value();
  BOOST_TEST(data->vocabulary == 333u);
  std::vector<Token> expected = tokens_of(config.tokenizer, one), found(data->train_tokens.size());
  for (const Token token : tokens_of(config.tokenizer, two)) expected.push_back(token);
  data->train_tokens.copy(0, found);
  found.resize(expected.size());
  data->test_tokens.copy(0, std::span(found).last(data->test_tokens.size()));
  BOOST_TEST((found == expected));

  scratch.write("texts/2", std::string_view("caf\xe9"));
  BOOST_TEST(scratch.cut(load_data(config, 8).error().text) ==
             "texts/2: byte 3 is no UTF-8; convert the text first, such as with iconv -t UTF-8");
  config = {.kind = "synthetic", .tokens = "t.json"};
  BOOST_TEST(open_tokenizer_of(config).error().text.starts_with("data.tokens makes tokens of a text, but data.kind"));
}

// Numbers beyond 65,535 take words of 32 bits.
BOOST_AUTO_TEST_CASE(a_large_vocabulary_keeps_its_numbers) {
  nlohmann::json file = golden_json("llama3.json");
  file["added_tokens"][0]["id"] = 128'000;
  const std::string text = "a<|endoftext|>b";
  const TextFile one{"one", nullptr, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}};
  const TokenArray tokens = encode_texts({one, one}, tokenizer_from(file), {}).value();
  BOOST_REQUIRE(tokens.size() == 6u);
  std::vector<Token> middle(3);
  tokens.copy(1, middle);
  const auto letter = [](char byte) { return static_cast<Token>(byte - '!'); };
  BOOST_TEST((middle == std::vector<Token>{128'000, letter('b'), letter('a')}));
}

BOOST_AUTO_TEST_CASE(the_hash_is_of_the_meaning) {
  nlohmann::json file = golden_json("llama3.json");
  const Hash256 hash = tokenizer_from(file)->hash();
  file["truncation"] = "other";
  for (auto& merge : file["model"]["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  BOOST_TEST((tokenizer_from(file)->hash() == hash));
  nlohmann::json other = file;
  std::swap(other["model"]["merges"][0], other["model"]["merges"][1]);
  BOOST_TEST((tokenizer_from(other)->hash() != hash));
  other = file;
  other["normalizer"] = {{"type", "NFC"}};
  const Hash256 composed = tokenizer_from(other)->hash();
  BOOST_TEST((composed != hash));
  other["normalizer"] = {{"type", "NFKC"}};
  BOOST_TEST((tokenizer_from(other)->hash() != hash && tokenizer_from(other)->hash() != composed));
  other = file;
  auto& steps = other["pre_tokenizer"]["pretokenizers"];
  steps.insert(steps.begin(), nlohmann::json{{"type", "Digits"}, {"individual_digits", true}});
  BOOST_TEST((tokenizer_from(other)->hash() != hash));
  other = file;
  other["added_tokens"].erase(1);
  BOOST_TEST((tokenizer_from(other)->hash() != hash));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor::models
