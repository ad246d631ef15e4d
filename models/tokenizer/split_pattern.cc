#define PCRE2_CODE_UNIT_WIDTH 8
#include "models/tokenizer/split_pattern.h"

#include <pcre2.h>

#include "runtime/base/text.h"

namespace rumor::models {
namespace {

// Unicode's White_Space as members of a class.
constexpr std::string_view white_space = "\\t-\\r\\x{85}\\p{Z}";
// Steps of one match: above what patterns of tokenizers take (thousands), below what a person would wait for.
constexpr std::uint32_t match_steps_max = 1'000'000;
constexpr std::size_t jit_stack_bytes = 32 << 10, jit_stack_bytes_max = 1 << 20;

Error cannot_split(const std::string& why) {
  return Error{Errc::mismatch, str("the pattern of the pre-tokenizer ", why)};
}

// The pattern as PCRE2 has to read it.
Result<std::string> for_pcre(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char letter = pattern[at];
    if (letter == '\\' && at + 1 < pattern.size()) {
      const char next = pattern[++at];
      if (next == 's' || (next == 'S' && !in_class)) {
        out += in_class ? std::string(white_space) : str(next == 's' ? "[" : "[^", white_space, "]");
        continue;
      }
      out += {letter, next};
      continue;
    }
    const bool is_named = pattern.substr(at, 2) == "[:";
    if (in_class && ((letter == '[' && !is_named) || pattern.substr(at, 2) == "&&"))
      return cannot_split("has a class within a class, which is not supported");
    if (in_class && is_named) {
      const std::size_t end = pattern.find(":]", at + 2);
      if (end == std::string_view::npos) return cannot_split("has [: without :]");
      out += pattern.substr(at, end + 2 - at);
      at = end + 1;
      continue;
    }
    out += letter;
    if (!in_class && letter == '[') {
      in_class = true;
      for (const char first : {'^', ']'})  // a bracket that comes first is a member
        if (at + 1 < pattern.size() && pattern[at + 1] == first) out += pattern[++at];
    } else if (in_class && letter == ']') {
      in_class = false;
    }
  }
  return out;
}

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

class SplitPattern::Matcher {
 public:
  explicit Matcher(const pcre2_code* code)
      : code_(code),
        data_(pcre2_match_data_create_from_pattern(code, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(jit_stack_bytes, jit_stack_bytes_max, nullptr)) {
    pcre2_set_match_limit(context_, match_steps_max);
    if (stack_ != nullptr) pcre2_jit_stack_assign(context_, nullptr, stack_);
  }
  ~Matcher() {
    pcre2_match_data_free(data_);
    pcre2_match_context_free(context_);
    if (stack_ != nullptr) pcre2_jit_stack_free(stack_);
  }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // Looks for the next match. A positive number, PCRE2_ERROR_NOMATCH, or another error.
  int next(std::string_view text, std::size_t from) {
    const auto match = [&](std::uint32_t options) {
      return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                         options | PCRE2_NO_UTF_CHECK, data_, context_);
    };
    const int found = match(0);
    return found == PCRE2_ERROR_JIT_STACKLIMIT ? match(PCRE2_NO_JIT) : found;
  }
  std::size_t begin() const { return pcre2_get_ovector_pointer(data_)[0]; }
  std::size_t end() const { return pcre2_get_ovector_pointer(data_)[1]; }

 private:
  const pcre2_code* code_;
  pcre2_match_data* data_;
  pcre2_match_context* context_;
  pcre2_jit_stack* stack_;
};

std::shared_ptr<SplitPattern::Matcher> SplitPattern::matcher() const { return std::make_shared<Matcher>(code_.get()); }

Result<SplitPattern> SplitPattern::compile(const std::string& pattern) {
  if (pattern.size() > pattern_bytes_max) return cannot_split(str("has more than ", pattern_bytes_max, " bytes"));
  const auto text = for_pcre(pattern);
  if (!text) return text.error();
  int failure = 0;
  PCRE2_SIZE place = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text->data()), text->size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &failure, &place, nullptr);
  if (code == nullptr) return cannot_split(str("cannot be read: ", message_of(failure)));
  SplitPattern split;
  split.code_ = std::shared_ptr<pcre2_code>(code, pcre2_code_free);
  std::uint32_t matches_empty = 0;
  pcre2_pattern_info(code, PCRE2_INFO_MATCHEMPTY, &matches_empty);
  if (matches_empty != 0) return cannot_split("matches the empty text");
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is none, matching is slower
  return split;
}

Result<void> SplitPattern::split(Matcher& matcher, std::string_view text,
                                 const std::function<Result<void>(std::string_view piece)>& take) {
  std::size_t at = 0;
  while (at < text.size()) {
    const int found = matcher.next(text, at);
    if (found < 0 && found != PCRE2_ERROR_NOMATCH)
      return Error{Errc::limit, str("the pattern of the pre-tokenizer fails at byte ", at, " of the text: ",
                                    message_of(found))};
    const bool is_match = found > 0 && matcher.begin() >= at && matcher.end() > matcher.begin();
    const std::size_t begin = is_match ? matcher.begin() : text.size(), end = is_match ? matcher.end() : text.size();
    if (begin > at)
      if (auto taken = take(text.substr(at, begin - at)); !taken) return taken;
    if (end > begin)
      if (auto taken = take(text.substr(begin, end - begin)); !taken) return taken;
    at = end;
  }
  return {};
}

}  // namespace rumor::models
