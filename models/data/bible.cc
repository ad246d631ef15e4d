// Reads the King James Bible from its package's file.
//
// The file, numbers big-endian: at 0 the text "EC02Compressed Data File", at 0x54 the size of a piece
// unpacked, at 0x58 the number of pieces, at 0x5c the offset of each and of the end; then 1f 9d 90, the
// header of compress(1), once for all pieces. A piece is what compress(1) writes: codes of 9 to 16 bits,
// lowest bit first, in groups of eight codes of one width; code 256 empties the table. Method: Welch 1984.
#include <algorithm>
#include <cstring>
#include <vector>

#include "models/data/data_sources.h"
#include "runtime/base/bytes.h"
#include "runtime/base/text.h"

namespace rumor::models {
namespace {

constexpr std::size_t sizes_at = 0x54, offsets_at = 0x5c;
constexpr std::uint32_t piece_bytes_max = 1 << 20, pieces_max = 1 << 12;
constexpr unsigned bits_least = 9, bits_most = 16;
constexpr std::uint32_t clear_code = 256, first_free = 257, no_code = UINT32_MAX;

// Codes of a width that the caller sets; when it does, the rest of the group of eight is skipped.
class CodeReader {
 public:
  explicit CodeReader(BytesView bytes) : bytes_(bytes) {}

  void set_width(unsigned bits) {
    if (bits == bits_) return;
    skip_group();
    bits_ = bits;
  }
  void skip_group() {
    const std::size_t group = std::size_t{8} * bits_;
    at_ = group_at_ = group_at_ + (at_ - group_at_ + group - 1) / group * group;
  }
  // no_code at the end.
  std::uint32_t next() {
    if (at_ + bits_ > bytes_.size() * 8) return no_code;
    std::uint32_t word = 0;
    for (std::size_t byte = 0; byte < 3 && at_ / 8 + byte < bytes_.size(); ++byte)
      word |= static_cast<std::uint32_t>(bytes_[at_ / 8 + byte]) << (8 * byte);
    const std::uint32_t code = word >> (at_ % 8) & ((1u << bits_) - 1);
    at_ += bits_;
    return code;
  }
  std::size_t byte() const { return std::min(at_ / 8, bytes_.size()); }

 private:
  BytesView bytes_;
  unsigned bits_ = bits_least;
  std::size_t at_ = 0, group_at_ = 0;  // in bits
};

struct Table {
  std::vector<std::uint16_t> prefix = std::vector<std::uint16_t>(1u << bits_most);
  std::vector<std::uint8_t> last = std::vector<std::uint8_t>(1u << bits_most);
};

// Appends the bytes of `code` in order; the first of them is returned.
std::uint8_t unfold(const Table& table, std::uint32_t code, Bytes& out) {
  const std::size_t begin = out.size();
  for (; code >= first_free; code = table.prefix[code]) out.push_back(table.last[code]);
  out.push_back(static_cast<std::uint8_t>(code));
  std::reverse(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end());
  return out[begin];
}

// Appends one piece to `out`, at most `bytes_max` bytes. Returns false if the piece is damaged, with the place in `at`.
bool unpack_piece(BytesView piece, std::size_t bytes_max, Table& table, Bytes& out, std::size_t& at) {
  CodeReader codes(piece);
  const std::size_t end_max = out.size() + bytes_max;
  std::uint32_t free = first_free, before = no_code;
  std::uint8_t first = 0;
  for (;;) {
    unsigned width = bits_least;
    while (width < bits_most && free >= 1u << width) ++width;
    codes.set_width(width);
    at = codes.byte();
    const std::uint32_t code = codes.next();
    if (code == no_code) return true;
    if (code == clear_code) {
      codes.skip_group();
      free = first_free;
      before = no_code;
      continue;
    }
    if (code > free || (code == free && before == no_code) || (before == no_code && code > 255)) return false;
    const bool unknown = code == free;  // the one that is made of the last and its own first byte
    first = unfold(table, unknown ? before : code, out);
    if (unknown) out.push_back(first);
    if (out.size() > end_max) return false;
    if (before != no_code && free < 1u << bits_most) {
      table.prefix[free] = static_cast<std::uint16_t>(before);
      table.last[free++] = first;
    }
    before = code;
  }
}

}  // namespace

Result<Bytes> unpack_bible(BytesView bytes, const std::string& file) {
  const auto damaged = [&file](std::size_t offset, const std::string& what) {
    return Error{Errc::corrupt, str(file, ", offset ", offset, ": ", what,
                                    "; run 'apt-get install --reinstall bible-kjv-text'")};
  };
  constexpr std::string_view magic = "EC02Compressed Data File";
  if (bytes.size() < offsets_at + 4 || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return damaged(0, "expected the header EC02Compressed Data File");
  const std::uint32_t piece = big_endian(bytes, sizes_at), pieces = big_endian(bytes, sizes_at + 4);
  if (piece == 0 || piece > piece_bytes_max) return damaged(sizes_at, str("pieces of ", piece, " bytes"));
  if (pieces == 0 || pieces > pieces_max) return damaged(sizes_at + 4, str(pieces, " pieces"));
  const std::size_t header = offsets_at + 4 * (std::size_t{pieces} + 1);
  if (bytes.size() < header + 3) return damaged(bytes.size(), "the file ends inside its table of pieces");
  if (bytes[header] != 0x1f || bytes[header + 1] != 0x9d || bytes[header + 2] != (0x80 | bits_most))
    return damaged(header, "expected 1f9d90, the header of compressed data");
  Table table;
  Bytes text;
  std::uint64_t begin = header + 3;
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const std::size_t entry = offsets_at + 4 * std::size_t{i};
    const std::uint64_t from = big_endian(bytes, entry), to = big_endian(bytes, entry + 4);
    if (from != begin || to < from || to > bytes.size())
      return damaged(entry, str("piece ", i, " goes from ", from, " to ", to));
    std::size_t at = 0;
    if (!unpack_piece(bytes.subspan(from, to - from), piece, table, text, at))
      return damaged(from + at, "the compressed data is damaged");
    if (i + 1 < pieces && text.size() != std::size_t{piece} * (i + 1))
      return damaged(to,
                     str("piece ", i, " ends ", std::size_t{piece} * (i + 1) - text.size(), " bytes early"));
    begin = to;
  }
  return text;
}

}  // namespace rumor::models
