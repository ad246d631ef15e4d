#include "runtime/run/toml_text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>

#include "runtime/base/text.h"

namespace rumor {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }
bool all_ascii(std::string_view text) { return std::all_of(text.begin(), text.end(), is_ascii); }

// Takes one character beyond ASCII from the front; nothing when it is none of UTF-8's.
std::optional<std::uint32_t> take_code_point(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return std::nullopt;
  std::uint32_t code = first & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return std::nullopt;
    code = code << 6 | (next & 0x3F);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[length] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return std::nullopt;
  text.remove_prefix(length);
  return code;
}

// Walks through comments and strings as a TOML reader does. Malformed text is left to the library. The output is
// ASCII in any case.
class Rewriter {
 public:
  explicit Rewriter(std::string_view text) : rest_(text) {}

  // Returns false if the character at the front is not allowed there.
  bool run() {
    while (!rest_.empty()) {
      if (!is_ascii(rest_[0])) return false;
      if (rest_[0] == '#') {
        pass_comment();
      } else if (rest_[0] == '"') {
        if (!pass_basic(is_long('"'))) return false;
      } else if (rest_[0] == '\'') {
        if (!pass_literal()) return false;
      } else {
        copy(1);
      }
    }
    return true;
  }

  std::string_view rest() const { return rest_; }
  std::string take() { return std::move(out_); }

 private:
  bool is_long(char quote) const { return rest_.starts_with(std::string(3, quote)); }
  void copy(std::size_t count) {
    out_ += rest_.substr(0, count);
    rest_.remove_prefix(std::min(count, rest_.size()));
  }

  void pass_comment() {
    for (; !rest_.empty() && rest_[0] != '\n'; rest_.remove_prefix(1)) out_ += is_ascii(rest_[0]) ? rest_[0] : '?';
  }

  bool escape() {
    const auto code = take_code_point(rest_);
    if (!code) return false;
    char text[16];
    std::snprintf(text, sizeof text, "\\U%08X", static_cast<unsigned>(*code));
    out_ += text;
    return true;
  }

  // With escapes; to behind its end, or to the end of the line where it should have ended.
  bool pass_basic(bool several_lines) {
    copy(several_lines ? 3 : 1);
    while (!rest_.empty() && (several_lines || rest_[0] != '\n')) {
      if (rest_[0] == '\\') {
        if (!all_ascii(rest_.substr(0, 2))) return false;
        copy(2);
      } else if (several_lines ? is_long('"') : rest_[0] == '"') {
        // Up to two more before the three at its end are of the text.
        const std::size_t quotes = std::min(rest_.find_first_not_of('"'), rest_.size());
        copy(several_lines ? std::min<std::size_t>(quotes, 5) : 1);
        return true;
      } else if (is_ascii(rest_[0])) {
        copy(1);
      } else if (!escape()) {
        return false;
      }
    }
    return true;
  }

  // Without escapes: where it needs them, one of a line becomes a string that has them.
  bool pass_literal() {
    if (is_long('\'')) {
      const std::size_t end = rest_.find("'''", 3);
      const std::size_t size = end == std::string_view::npos ? rest_.size() : end + 3;
      if (!all_ascii(rest_.substr(0, size))) return skip_to_stray();
      copy(size);
      for (int more = 0; more < 2 && rest_.starts_with('\''); ++more) copy(1);  // two more may be of the text
      return true;
    }
    const std::size_t end = rest_.find_first_of("'\n", 1);
    const std::size_t size = end == std::string_view::npos ? rest_.size() : end;
    if (all_ascii(rest_.substr(0, size))) {
      copy(size + (size < rest_.size() && rest_[size] == '\'' ? 1 : 0));
      return true;
    }
    if (size == rest_.size() || rest_[size] == '\n') return skip_to_stray();
    return pass_as_basic(size - 1);
  }

  bool pass_as_basic(std::size_t count) {
    rest_.remove_prefix(1);
    out_ += '"';
    for (const std::size_t behind = rest_.size() - count; rest_.size() > behind;) {
      if (!is_ascii(rest_[0])) {
        if (!escape()) return false;
        continue;
      }
      if (rest_[0] == '"' || rest_[0] == '\\') out_ += '\\';
      copy(1);
    }
    out_ += '"';
    rest_.remove_prefix(1);
    return true;
  }

  bool skip_to_stray() {
    while (is_ascii(rest_[0])) rest_.remove_prefix(1);
    return false;
  }

  std::string_view rest_;
  std::string out_;
};

}  // namespace

Result<std::string> toml_in_ascii(std::string_view text, const std::string& source) {
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (all_ascii(text)) return std::string(text);
  Rewriter rewriter(text);
  if (rewriter.run()) return rewriter.take();
  const std::string_view before = text.substr(0, text.size() - rewriter.rest().size());
  return Error{Errc::usage,
               str(source, ": line ", 1 + std::count(before.begin(), before.end(), '\n'),
                   ": a character beyond ASCII; it may be in a comment, and in a text of one line (as UTF-8)")};
}

}  // namespace rumor
