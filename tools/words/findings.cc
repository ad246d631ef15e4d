#include "tools/words/findings.h"

#include "runtime/base/text.h"
#include "tools/words/peer_report.h"

namespace rumor::tools {

void Findings::add(const char* verdict, const std::string& what, const std::string& found, const std::string& fix) {
  text_ += str(verdict, "  ", column(what, 13), found, "\n");
  if (!fix.empty()) text_ += str(std::string(19, ' '), "fix: ", fix, "\n");
}

void Findings::warn(const std::string& what, const std::string& found, const std::string& fix) {
  ++warned_;
  add("warn", what, found, fix);
}

void Findings::bad(const std::string& what, const std::string& found, const std::string& fix) {
  ++broken_;
  add("BAD ", what, found, fix);
}

std::string Findings::text() const {
  if (broken_ > 0) return str(text_, "\n", broken_, " broken, ", warned_, " worth a look\n");
  return str(text_, "\nall is well", warned_ > 0 ? str(", ", warned_, " worth a look") : "", "\n");
}

}  // namespace rumor::tools
