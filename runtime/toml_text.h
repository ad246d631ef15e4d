// What people write as TOML (run files, descriptions of networks and faults), looked at before the library parses it.
//
// Outside of comments and strings TOML 1.0 is ASCII. The library (toml++ 3.3) says so too, but its look-up of what is
// white space first reaches code that it takes for unreachable: undefined behaviour by a letter in the wrong place. It
// looks for white space within strings of several lines as well, so here these are ASCII, too.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rumor {

// Errors: Errc::usage, "SOURCE: line N: ..." where a character beyond ASCII is elsewhere than in a comment or a string
// of one line.
Result<void> check_toml_text(std::string_view text, const std::string& source);

}  // namespace rumor
