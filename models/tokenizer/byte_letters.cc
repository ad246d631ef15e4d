#include "models/tokenizer/byte_letters.h"

#include <array>

namespace rumor::models {
namespace {

constexpr std::size_t letters_end = 512;  // code points of all letters are below

struct Letters {
  std::array<char32_t, 256> of_byte{};
  std::array<int, letters_end> byte_of{};  // -1: spells no byte
};

constexpr Letters make_letters() {
  Letters letters;
  letters.byte_of.fill(-1);
  char32_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    const char32_t letter = is_itself ? static_cast<char32_t>(byte) : next++;
    letters.of_byte[static_cast<std::size_t>(byte)] = letter;
    letters.byte_of[letter] = byte;
  }
  return letters;
}

constexpr Letters letters_of_bytes = make_letters();

}  // namespace

std::string bytes_of_letters(std::string_view letters) {
  std::string out;
  for (std::size_t at = 0; at < letters.size();) {
    const auto lead = static_cast<unsigned char>(letters[at]);
    const bool is_pair = (lead & 0xe0) == 0xc0 && at + 1 < letters.size();
    const std::size_t letter =
        is_pair ? (lead & 0x1fu) << 6 | (static_cast<unsigned char>(letters[at + 1]) & 0x3fu) : lead;
    const int byte = letter < letters_end ? letters_of_bytes.byte_of[letter] : -1;
    out += byte < 0 ? letters[at] : static_cast<char>(byte);
    at += byte >= 0 && is_pair ? 2 : 1;
  }
  return out;
}

std::string letter_of_byte(unsigned char byte) {
  const char32_t letter = letters_of_bytes.of_byte[byte];
  if (letter < 0x80) return std::string(1, static_cast<char>(letter));
  return {static_cast<char>(0xc0 | letter >> 6), static_cast<char>(0x80 | (letter & 0x3f))};
}

}  // namespace rumor::models
