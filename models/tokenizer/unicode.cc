#include "models/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/base/check.h"

namespace rumor::models {
namespace {

// About this many bytes are normalized at once, since utf8proc takes four bytes for each of them.
constexpr std::size_t block_bytes = 1 << 16;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

void append_normalized(std::string_view block, NormalForm form, std::string& out) {
  if (is_ascii(block)) {
    out += block;
    return;
  }
  utf8proc_uint8_t* composed = nullptr;
  const int compatible = form == NormalForm::nfkc ? UTF8PROC_COMPAT : 0;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | compatible);
  const utf8proc_ssize_t bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(block.data()),
                                              static_cast<utf8proc_ssize_t>(block.size()), &composed, options);
  RUMOR_CHECK(bytes >= 0);  // the text is valid
  out.append(reinterpret_cast<const char*>(composed), static_cast<std::size_t>(bytes));
  std::free(composed);
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  std::size_t at = 0;
  while (at < text.size()) {
    if (bytes[at] < 0x80) {
      ++at;
      continue;
    }
    utf8proc_int32_t code = 0;
    const utf8proc_ssize_t taken = utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (taken <= 0) return at;
    at += static_cast<std::size_t>(taken);
  }
  return at;
}

// A block ends after a new line, which no character before or after it is composed with.
std::string normalized(std::string_view text, NormalForm form) {
  if (form == NormalForm::none) return std::string(text);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t line = text.size() > block_bytes ? text.find('\n', block_bytes) : std::string_view::npos;
    const std::size_t end = line == std::string_view::npos ? text.size() : line + 1;
    append_normalized(text.substr(0, end), form, out);
    text.remove_prefix(end);
  }
  return out;
}

}  // namespace rumor::models
