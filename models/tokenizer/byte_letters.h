// GPT-2's spelling of bytes as letters: printable ones as themselves, the others as the code points from 256 on, in
// order. So the vocabulary of a byte-level tokenizer is text, whatever bytes its tokens are.
//
// Thread: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace rumor::models {

// The bytes of a token. Letters that spell no byte, as in special tokens, stay as they are.
std::string bytes_of_letters(std::string_view letters);
// The letter of a byte, in UTF-8.
std::string letter_of_byte(unsigned char byte);

}  // namespace rumor::models
