#include "tools/text/byte_pairs.h"

#include <boost/test/unit_test.hpp>

#include <utility>

using namespace rumor;
using namespace rumor::tools;

BOOST_AUTO_TEST_SUITE(byte_pairs)

namespace {

// Printed by golden_byte_pairs.py: what it merged in which order, and how it cuts texts with that.
const std::vector<std::string> merges = {
    "he", "the", " the", "at", "nd", "re", " a", " s", "on", " and", "\xe2\x80", " \xe2\x80", " \xe2\x80\x94", "..",
    "19", "og", "rs", " c", " d", " on", " 19", " they", " sa", " sat", "af", "a\xc3", "na\xc3", "ve", "\xafve",
    "\xc3\xa9", " na\xc3", "af\xc3\xa9", " na\xc3\xafve", "'l", "'s", "'t", "'re", "84", "99", "es", "end", "id",
    "it", "irs", "log", "mat", "othe", "ses", "we", " '", " he", " end", " log", " mat", " othe", " we", " there",
    " theirs", " theses", " are", "...", " cat", " caf\xc3\xa9", " don", " dog", " 1984", " 1999", " say", " said",
    "'ll"};
const std::vector<std::pair<std::string, std::vector<std::string>>> texts = {
    {"the others said", {"the", " othe", "rs", " said"}},
    {"they'll don't 's 'sat", {"the", "y", "'ll", " don", "'t", " '", "s", " '", "s", "at"}},
    {" the  cat\x0a\x0a  sat \x09 on", {" the", " ", " cat", "\x0a", "\x0a", " ", " sat", " ", "\x09", " on"}},
    {"19841999 a1b2c3", {"19", "84", "19", "99", " a", "1", "b", "2", "c", "3"}},
    {"caf\xc3\xa9s na\xc3\xafve\xe2\x80\x94the \xe2\x82\xac" "5", {"c", "af\xc3\xa9", "s", " na\xc3\xafve",
     "\xe2\x80", "\x94", "the", " ", "\xe2", "\x82", "\xac", "5"}},
    {"...,.;  ", {"...", ",", ".", ";", " ", " "}},
    {"\x0a", {"\x0a"}},
    {"THE Cat'S", {"T", "H", "E", " ", "C", "at", "'", "S"}},
    {"\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e the", {"\xe6", "\x97", "\xa5", "\xe6", "\x9c", "\xac", "\xe8", "\xaa",
     "\x9e", " the"}},
    {"     ", {" ", " ", " ", " ", " "}},
};

Vocabulary vocabulary() {
  Vocabulary tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens[std::string(1, static_cast<char>(byte))] = static_cast<models::Token>(byte);
  for (const std::string& merge : merges) tokens[merge] = static_cast<models::Token>(tokens.size());
  return tokens;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  while (const std::size_t length = first_word(text)) {
    out.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

BOOST_AUTO_TEST_CASE(cuts_texts_as_gpt2_does) {
  const Vocabulary tokens = vocabulary();
  BOOST_TEST(tokens.size() == 256 + merges.size());
  std::map<models::Token, std::string> spelled;
  for (const auto& [bytes, token] : tokens) spelled[token] = bytes;
  for (const auto& [text, expected] : texts) {
    std::vector<std::string> pieces;
    const std::vector<models::Token> merged = merge_pairs(tokens, text).value();
    for (const models::Token token : merged) pieces.push_back(spelled[token]);
    BOOST_TEST(pieces == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(words_keep_every_byte) {
  BOOST_TEST(words("I'm here, \n 2nd \xff\xc3") ==
                 (std::vector<std::string>{"I", "'m", " here", ",", " \n", " 2", "nd", " \xff\xc3"}),
             boost::test_tools::per_element());
  const std::vector<std::string> long_word = words(std::string(1300, 'a'));
  BOOST_TEST(long_word.size() == 3);
  BOOST_TEST(long_word[0].size() + long_word[1].size() + long_word[2].size() == 1300);
}

BOOST_AUTO_TEST_CASE(a_byte_without_a_token_is_an_error) {
  const Vocabulary tokens = {{"a", 0}, {"aa", 1}};
  BOOST_TEST((merge_pairs(tokens, "aaa").value() == std::vector<models::Token>{1, 0}));
  const auto failed = merge_pairs(tokens, "ab");
  BOOST_REQUIRE(!failed);
  BOOST_TEST((failed.error().code == Errc::usage));
  BOOST_TEST(failed.error().text.find("byte 98") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
