// SplitPattern: the regular expression by which a byte-level tokenizer cuts a text into pieces before it merges bytes,
// run by PCRE2 (pcre.org) with Unicode properties.
//
// The patterns of tokenizer.json are written for Oniguruma. PCRE2 reads two things differently, so they are handled
// here: \s is Unicode's White_Space, without U+180E; classes within classes are refused.
//
// Thread: immutable once compiled.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

struct pcre2_real_code_8;

namespace rumor::models {

class SplitPattern {
 public:
  static constexpr std::size_t pattern_bytes_max = 1 << 16;

  // Errors: Errc::mismatch: no pattern that PCRE2 can read, or one that matches the empty text.
  static Result<SplitPattern> compile(const std::string& pattern);

  // Hands over the matches and the parts between them, in order; together they are the text. Requires: valid UTF-8.
  // Errors: Errc::limit: the pattern takes too many steps, or `take` returned an error.
  Result<void> split(std::string_view text, const std::function<Result<void>(std::string_view piece)>& take) const;

 private:
  std::shared_ptr<pcre2_real_code_8> code_;
};

}  // namespace rumor::models
