// TOML text from people (run files, descriptions of networks and faults), made safe for the parsing library.
//
// The library (toml++ 3.3) classifies white space by a table. Some characters beyond ASCII, U+00E9 among them, reach
// code there that it assumes unreachable: a letter in the wrong place is undefined behaviour. So the library gets
// none of these characters.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rumor {

// The same text in ASCII, line by line: other characters become escapes in strings and are dropped from comments.
// Errors: Errc::usage, "SOURCE: line N: ..." if one is elsewhere, in a literal string of several lines, or no UTF-8.
Result<std::string> toml_in_ascii(std::string_view text, const std::string& source);

}  // namespace rumor
