// What people write as TOML (run files, descriptions of networks and faults), made fit for the library that parses it.
//
// The library (toml++ 3.3) looks up what is white space in a way that some characters beyond ASCII, U+00E9 among them,
// lead to code which it takes for unreachable: undefined behaviour by a letter in the wrong place. So it is given none.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rumor {

// The same in ASCII, line by line: what is beyond it becomes an escape in strings, and is left out of comments.
// Errors: Errc::usage, "SOURCE: line N: ..." where it is in neither, in a literal string of several lines, or no UTF-8.
Result<std::string> toml_in_ascii(std::string_view text, const std::string& source);

}  // namespace rumor
