// Fuzzes the run file reader: any text gives a configuration or one line that says what is wrong with it.
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/run_config.h"

using namespace rumor;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;  // nested brackets of any depth are the TOML library's business
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = parse_run_config(text, "fuzz.toml");
  if (!config) {
    RUMOR_CHECK(!config.error().text.empty());
    return 0;
  }
  RUMOR_CHECK(config->density >= 0 && config->batch >= 1);
  return 0;
}
