// TOML as people write it: characters beyond ASCII where they may be and where not.
#include <boost/test/unit_test.hpp>

#include "runtime/run_config.h"
#include "runtime/toml_text.h"

namespace rumor {

namespace {

std::string stray_in(std::string_view text) {
  const auto checked = check_toml_text(text, "it");
  return checked ? "" : checked.error().text;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(toml_text)

BOOST_AUTO_TEST_CASE(letters_of_all_languages_may_be_in_comments_and_texts) {
  for (const char* text : {"# größer\na = 1", "a = \"größe\" # \"ö\"", "a = 'größe'\nb = '\\'\n# ö",
                           "a = \"\\\"ö\"", "\xEF\xBB\xBF" "a = 1", "a = [\"ö\", 'ö']", "\"ö\" = 1",
                           "a = \"\"\"x\"\"\"\"\"\nb = \"ö\"", "a = '''\n'x'''\nb = 'ö' # '''ö", "a = \"\"\nb = ''#ö"})
    BOOST_TEST(stray_in(text) == "", text);
}

BOOST_AUTO_TEST_CASE(elsewhere_they_are_refused_with_their_line) {
  for (const char* text : {"\n\nö = 1", "#\n\na = ö", "a = 1\nb = 'x'\nc = 2 ö", "\n\n\xEF\xBB\xBB,",
                           "a = '''\n\nö'''", "a = \"\"\"\n\n\\  ö\"\"\"", "a = \"\"\"\\\\\"\"\"\n\nö", "a = '\n\n ö'",
                           "\n\na = \"\"\"\\\"\"\"ö\"\"\"", "\xEF\xBB\xBF\n\n\xEF\xBB\xBF", "a = '''#\n\nö", "\n\n[ö]"})
    BOOST_TEST(stray_in(text).starts_with("it: line 3: a character beyond ASCII"), text << ": " << stray_in(text));
}

// The library says what is wrong with it.
BOOST_AUTO_TEST_CASE(what_is_cut_off_is_left_to_the_library) {
  for (const char* text : {"", "\xEF\xBB\xBF", "a = \"x", "a = '\\", "a = \"\\", "a = \"\"\"\\", "a = '''", "#"})
    BOOST_TEST(stray_in(text) == "", text);
}

BOOST_AUTO_TEST_CASE(a_run_file_and_a_setting_are_looked_at) {
  BOOST_TEST(parse_run_config("[run]\nname = 'größe'", "it").value().name == "größe");
  BOOST_TEST(parse_run_config("[run]\nnäme = 1", "it").error().text.starts_with("it: line 2: a character beyond"));
  RunConfig config;
  BOOST_TEST(override_run_config(config, "run.name=größe").ok());
  BOOST_TEST(config.name == "größe");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace rumor
