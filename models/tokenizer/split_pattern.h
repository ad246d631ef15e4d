// SplitPattern: the regular expression by which a byte-level tokenizer cuts a text into pieces before it merges bytes,
// run by PCRE2 (pcre.org) with Unicode properties.
//
// The patterns of tokenizer.json are written for Oniguruma. PCRE2 reads two things differently, so they are handled
// here: \s is Unicode's White_Space, without U+180E; classes within classes are refused.
//
// Thread: immutable once compiled. A Matcher has one owner.
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

  // The memory of matching, for this pattern alone; it must not outlive it.
  class Matcher;
  std::shared_ptr<Matcher> matcher() const;

  // Hands over the matches and the parts between them, in order; together they are the text. Requires: valid UTF-8;
  // a matcher() of this pattern that no other split() is using.
  // Errors: Errc::limit: the pattern takes too many steps, or `take` returned an error.
  static Result<void> split(Matcher& matcher, std::string_view text,
                            const std::function<Result<void>(std::string_view piece)>& take);

 private:
  std::shared_ptr<pcre2_real_code_8> code_;
};

}  // namespace rumor::models
