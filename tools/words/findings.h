// Findings: the results of `rumor doctor`, one line each, with the fix below each problem.
//
// Thread: one owner.
#pragma once

#include <string>

namespace rumor::tools {

class Findings {
 public:
  void good(const std::string& what, const std::string& found) { add("ok  ", what, found, ""); }
  // Works, but not as well as it might.
  void warn(const std::string& what, const std::string& found, const std::string& fix);
  // Keeps a peer from running.
  void bad(const std::string& what, const std::string& found, const std::string& fix);

  bool broken() const { return broken_ > 0; }
  // All lines, and a summary.
  std::string text() const;

 private:
  void add(const char* verdict, const std::string& what, const std::string& found, const std::string& fix);

  std::string text_;
  int broken_ = 0, warned_ = 0;
};

}  // namespace rumor::tools
