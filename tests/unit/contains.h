// For tests of messages: whether a text has a part.
#pragma once

#include <string>

namespace rumor::test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace rumor::test
