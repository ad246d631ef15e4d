// Fuzzes the run file reader: any text gives a configuration or one line that says what is wrong with it.
#include <algorithm>
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/run/run_config.h"
#include "runtime/run/toml_text.h"
#include "tests/fuzz/target.h"

using namespace rumor;

FUZZ_TARGET(run_config) {
  if (size > 4096) return 0;  // nested brackets of any depth are the TOML library's business
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto ascii = toml_in_ascii(text, "fuzz.toml"); ascii.ok()) {
    RUMOR_CHECK(std::all_of(ascii->begin(), ascii->end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
    RUMOR_CHECK(std::count(ascii->begin(), ascii->end(), '\n') == std::count(text.begin(), text.end(), '\n'));
  }
  const auto config = parse_run_config(text, "fuzz.toml");
  if (!config) {
    RUMOR_CHECK(!config.error().text.empty());
    return 0;
  }
  RUMOR_CHECK(config->density >= 0 && config->batch >= 1);
  return 0;
}
