// The error of a run file that must be refused.
#pragma once

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>

#include "runtime/run/run_config.h"

namespace rumor::test {

// Empty where the text is a run file.
inline std::string error_of(std::string_view text) {
  const auto parsed = parse_run_config(text, "run.toml");
  if (parsed.ok()) return "";
  BOOST_TEST((parsed.error().code == Errc::usage));
  return parsed.error().text;
}

}  // namespace rumor::test
