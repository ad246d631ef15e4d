// TOML as people write it: characters beyond ASCII where they may be, and where not.
#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "runtime/run/run_config.h"
#include "runtime/run/toml_text.h"

namespace rumor {

namespace {

std::string ascii(std::string_view text) {
  const auto made = toml_in_ascii(text, "it");
  BOOST_REQUIRE_MESSAGE(made.ok(), (made ? "" : made.error().text));
  BOOST_TEST(std::all_of(made->begin(), made->end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
  return *made;
}

std::string refusal(std::string_view text) {
  const auto made = toml_in_ascii(text, "it");
  return made ? *made : made.error().text;
}

// A run file with this name.
std::string name_of(const std::string& text) {
  const auto config = parse_run_config("[run]\nname = " + text, "it");
  return config ? config->name : config.error().text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(toml_text)

BOOST_AUTO_TEST_CASE(ascii_stays_as_it_is) {
  for (const char* text : {"", "a = 1 # x\n", "a = 'x", "\"", "'''", "a = \"\\", "a = \"\"\"\\", "\x7F\x01"})
    BOOST_TEST(ascii(text) == text);
  BOOST_TEST(ascii("\xEF\xBB\xBF" "a = 1") == "a = 1");
}

BOOST_AUTO_TEST_CASE(comments_lose_it_and_texts_escape_it) {
  BOOST_TEST(ascii("# ö\na = 1 # \"ö\n") == "# ??\na = 1 # \"??\n");
  BOOST_TEST(ascii("a = \"ö\\\"ö\" # ö") == "a = \"\\U000000F6\\\"\\U000000F6\" # ??");
  BOOST_TEST(ascii("a = ['ö\"\\', '\\']") == "a = [\"\\U000000F6\\\"\\\\\", '\\']");
  BOOST_TEST(ascii("a = \"\"\"\n\"x\" \\\"\"\"\"\"\"\nb = \"ö\"") ==
             "a = \"\"\"\n\"x\" \\\"\"\"\"\"\"\nb = \"\\U000000F6\"");
  BOOST_TEST(ascii("a = \"\"\"\nö\"\"\" # ö") == "a = \"\"\"\n\\U000000F6\"\"\" # ??");
  BOOST_TEST(ascii("a = '''#'x''''' # ö") == "a = '''#'x''''' # ??");
  BOOST_TEST(ascii("a = \"\"\nb = '' #ö") == "a = \"\"\nb = '' #??");
}

BOOST_AUTO_TEST_CASE(a_name_means_what_it_says) {
  BOOST_TEST(name_of("\"größe € 𝄞\"") == "größe € 𝄞");
  BOOST_TEST(name_of("'größe \"\\n'") == "größe \"\\n");
  BOOST_TEST(name_of("\"\"\"größe\"\"\"") == "größe");
  BOOST_TEST(name_of("'plain\\n' # größer") == "plain\\n");
  RunConfig config;
  BOOST_TEST(override_run_config(config, "run.name=größe").ok());
  BOOST_TEST(config.name == "größe");
}

BOOST_AUTO_TEST_CASE(elsewhere_it_is_refused_with_its_line) {
  for (const char* text : {"\n\nö = 1", "#\n\na = ö", "a = 1\nb = 'x'\nc = 2 ö", "\n\n\xEF\xBB\xBB,", "a = '''\n\nö'''",
                           "a = \"\"\"\\\\\"\"\"\n\nö", "a = '\n\n ö'", "\n\na = \"\"\"\\\"\"\" \"\"\"ö",
                           "\xEF\xBB\xBF\n\n\xEF\xBB\xBF", "a = '''#\n\nö", "\n\n[ö]", "a = \"\"\"\n\n\\ö\"\"\"",
                           "\n\na = 'ö\n'", "\n\na = 'ö"})
    BOOST_TEST(refusal(text).starts_with("it: line 3: a character beyond ASCII"), text << ": " << refusal(text));
  BOOST_TEST(name_of("'x'\nnäme = 1").starts_with("it: line 3: a character beyond ASCII"));
}

BOOST_AUTO_TEST_CASE(what_is_no_utf_8_is_refused) {
  for (const char* text : {"\x80", "\xC1\x81", "\xC3", "\xC3z", "\xE0\x80\x80", "\xED\xA0\x80", "\xE2\x82",
                           "\xF4\x90\x80\x80", "\xF0\x80\x80\x80", "\xF5\x80\x80\x80", "\xFF"})
    for (const char* quote : {"\"", "'", "\"\"\""})
      BOOST_TEST(refusal(std::string("a = ") + quote + text + quote).starts_with("it: line 1: "));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor
