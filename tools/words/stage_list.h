// The stages of a pipeline that `rumor peer --stage` names.
//
// Thread: plain function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace rumor::tools {

// "2" and "2/4" -> 2; "1,2" and "1,2/4" -> 1 and 2; "all" -> all of them; where the run file has `stages`. Empty and
// "auto": none. In the order of the text. Errors: Errc::usage, with the right form, or with `stages` where they differ.
Result<std::vector<std::uint32_t>> parse_stages(const std::string& text, std::uint32_t stages);

}  // namespace rumor::tools
