// GPT-2's byte-pair encoding (Sennrich et al. 2016; Radford et al. 2019). A text is cut into words. In each word the
// neighbours whose union has the lowest number in the vocabulary are merged, again and again. GPT-2 numbered its tokens
// in the order in which their merges were found, so the vocabulary alone gives the order of merges.
//
// Thread: any; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/layers/token_batch.h"
#include "runtime/base/result.h"

namespace rumor::tools {

// Tokens by their bytes.
using Vocabulary = std::map<std::string, models::Token, std::less<>>;

// Returns the bytes of the first word of `text`, 0 if it is empty. A word is a contraction ('s, 're, ...), or letters,
// digits or other signs with the one space before them, or white space without a space that belongs to the next word.
// The Unicode block distinguishes letters beyond ASCII from signs. A word is cut after 512 bytes: no text has longer
// ones.
std::size_t first_word(std::string_view text);

// Errors: Errc::usage, when a byte of the text is no token.
Result<std::vector<models::Token>> merge_pairs(const Vocabulary& vocabulary, std::string_view text);

}  // namespace rumor::tools
