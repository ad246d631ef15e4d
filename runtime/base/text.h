// Small text helpers (g++ 11 has no <format>).
#pragma once

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace rumor {

// "a" + 1 + 2.5 -> "a12.5", as operator<< prints each.
template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Fixed-point decimal: fixed(2.0 / 3, 2) == "0.67".
std::string fixed(double value, int digits);

// The candidate nearest to `word`: the first one that begins with it, else by edit distance; empty when none is near
// (more than half the word differs). For "unknown key densitty; did you mean density?".
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace rumor
