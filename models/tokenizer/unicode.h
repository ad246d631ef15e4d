// UTF-8: where it ends being that, and its normalization forms (Unicode Standard Annex 15), through utf8proc.
//
// Thread: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rumor::models {

// The offset of the first byte that is not valid UTF-8 (RFC 3629: no surrogates, nothing overlong), or the size.
std::size_t first_invalid_utf8(std::string_view text);

// The form of a text that a tokenizer normalizes first. The numbers are part of a tokenizer's hash.
enum class NormalForm : std::uint8_t { none = 0, nfc = 1, nfkc = 2 };

// Valid UTF-8 in another form. Memory: the text once more.
std::string normalized(std::string_view text, NormalForm form);

}  // namespace rumor::models
