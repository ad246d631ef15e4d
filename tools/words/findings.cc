#include "tools/words/findings.h"

#include "runtime/base/text.h"
#include "tools/words/peer_report.h"

namespace rumor::tools {

void Findings::add(const char* verdict, const std::string& what, const std::string& found, const std::string& mend) {
  text_ += str(verdict, "  ", column(what, 13), found, "\n");
  if (!mend.empty()) text_ += str(std::string(19, ' '), "mend: ", mend, "\n");
}

void Findings::warn(const std::string& what, const std::string& found, const std::string& mend) {
  ++warned_;
  add("warn", what, found, mend);
}

void Findings::bad(const std::string& what, const std::string& found, const std::string& mend) {
  ++broken_;
  add("BAD ", what, found, mend);
}

std::string Findings::text() const {
  if (broken_ > 0) return str(text_, "\n", broken_, " broken, ", warned_, " worth a look\n");
  return str(text_, "\nall is well", warned_ > 0 ? str(", ", warned_, " worth a look") : "", "\n");
}

}  // namespace rumor::tools
