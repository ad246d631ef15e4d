#include "runtime/run/toml_table.h"

#include "runtime/base/text.h"
#include "runtime/run/toml_text.h"

namespace rumor {

Result<toml::table> parse_toml(std::string_view text, const std::string& source) {
  const Result<std::string> ascii = toml_in_ascii(text, source);
  if (!ascii) return ascii.error();
  try {
    return toml::parse(*ascii);
  } catch (const toml::parse_error& error) {
    return Error{Errc::usage, str(source, ": line ", error.source().begin.line, ": ", error.description())};
  }
}

}  // namespace rumor
