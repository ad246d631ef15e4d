// Opens the TOML that people write: run files, descriptions of networks and of faults.
//
// For .cc files only: the library is slow to compile (tests/tidy checks that no header includes this one).
#pragma once

#include <string>
#include <string_view>

#include <toml++/toml.h>

#include "runtime/base/result.h"

namespace rumor {

// Errors: Errc::usage, "SOURCE: line N: ...", for what is no TOML and for what toml_in_ascii() refuses.
Result<toml::table> parse_toml(std::string_view text, const std::string& source);

}  // namespace rumor
