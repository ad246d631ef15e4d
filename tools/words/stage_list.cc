#include "tools/words/stage_list.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "runtime/base/text.h"

namespace rumor::tools {

namespace {

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

}  // namespace

Result<std::vector<std::uint32_t>> parse_stages(const std::string& text, std::uint32_t stages) {
  std::vector<std::uint32_t> found;
  if (text.empty() || text == "auto") return found;
  if (text == "all") {
    for (std::uint32_t stage = 1; stage <= stages; ++stage) found.push_back(stage);
    return found;
  }
  const Error wrong{Errc::usage, str("--stage ", text, " wants auto, all, K or K/S with 1 <= K <= S, such as 2/4, or ",
                                     "several, such as 1,2/4; pipeline.stages = ", stages, " in the run file is S")};
  const std::string_view words = text;
  const std::size_t slash = words.find('/');
  std::uint32_t count = stages;
  if (slash != std::string_view::npos) {
    const auto given = whole_number(words.substr(slash + 1));
    if (!given) return wrong;
    count = *given;
  }
  for (std::string_view rest = words.substr(0, slash);;) {
    const std::size_t comma = rest.find(',');
    const auto stage = whole_number(rest.substr(0, comma));
    if (!stage || *stage < 1 || *stage > count) return wrong;
    found.push_back(*stage);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (count == stages) return found;
  return Error{Errc::usage, str("--stage ", text, ": the run file has pipeline.stages = ", stages,
                                "; all peers of a pipeline need the same")};
}

}  // namespace rumor::tools
