// UTF-8: where it ends being that, and normalization form C (Unicode Standard Annex 15), through utf8proc.
//
// Thread: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rumor::models {

// The offset of the first byte that is not valid UTF-8 (RFC 3629: no surrogates, nothing overlong), or the size.
std::size_t first_invalid_utf8(std::string_view text);

// Valid UTF-8 in normalization form C. Memory: the text once more.
std::string to_nfc(std::string_view text);

}  // namespace rumor::models
