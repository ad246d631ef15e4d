#include "runtime/toml_text.h"

#include <algorithm>
#include <optional>

#include "runtime/base/text.h"

namespace rumor {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

// Walks over comments and strings as a reader of TOML does. What is malformed it leaves to the library.
class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text), at_(text.starts_with(byte_order_mark) ? 3 : 0) {}

  // The line of the first character beyond ASCII outside of comments and of strings of one line.
  std::optional<std::size_t> stray() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) >= 0x80) return line();
      if (long_quote_ != 0)
        pass_in_long(c);
      else if (c == '#')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (c == '"' || c == '\'')
        pass_quote(c);
      else
        ++at_;
    }
    return std::nullopt;
  }

 private:
  std::size_t line() const {
    return 1 + static_cast<std::size_t>(std::count(text_.data(), text_.data() + at_, '\n'));
  }
  bool is_long(char quote) const { return text_.substr(at_, 3) == std::string(3, quote); }

  void pass_in_long(char c) {
    if (c == '\\' && long_quote_ == '"') {
      const std::string_view next = text_.substr(at_ + 1, 1);
      at_ += next == "\"" || next == "\\" ? 2 : 1;
    } else if (is_long(long_quote_)) {
      // The last three of up to five are its end.
      for (int i = 0; i < 5 && at_ < text_.size() && text_[at_] == long_quote_; ++i) ++at_;
      long_quote_ = 0;
    } else {
      ++at_;
    }
  }

  // The beginning of a string of several lines, or one of one line as a whole.
  void pass_quote(char quote) {
    if (is_long(quote)) {
      long_quote_ = quote;
      at_ += 3;
      return;
    }
    for (++at_; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == quote) break;
      if (text_[at_] == '\\' && quote == '"') ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  std::string_view text_;
  std::size_t at_;
  char long_quote_ = 0;  // of the string of several lines around us; 0: none
};

}  // namespace

Result<void> check_toml_text(std::string_view text, const std::string& source) {
  const auto line = Walk(text).stray();
  if (!line) return {};
  return Error{Errc::usage, str(source, ": line ", *line,
                                ": a character beyond ASCII; it may be in a comment, and in a text of one line")};
}

}  // namespace rumor
