// Bounded little-endian reader and writer, with LEB128 varints.
//
// Reader: never reads past its end. After the first short or malformed read it stays failed() and every
// further read returns zero, so a decoder may read a whole structure and test once; a failed reader's values
// must not be used. Varints are canonical: a longer form than needed is malformed (an encoding is unique).
//
// And big_endian() for file formats of others.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "runtime/base/types.h"

namespace rumor {

class ByteWriter {
 public:
  void u8(std::uint8_t v) { out_.push_back(v); }
  void u16(std::uint16_t v) { little(v, 2); }
  void u32(std::uint32_t v) { little(v, 4); }
  void u64(std::uint64_t v) { little(v, 8); }
  void varint(std::uint64_t v) {
    while (v >= 0x80) {
      out_.push_back(static_cast<std::uint8_t>(v | 0x80));
      v >>= 7;
    }
    out_.push_back(static_cast<std::uint8_t>(v));
  }
  void raw(BytesView bytes) {
    const std::size_t at = out_.size();
    out_.resize(at + bytes.size());  // not insert(): g++ 12 warns of an overflow that is not there
    if (!bytes.empty()) std::memcpy(out_.data() + at, bytes.data(), bytes.size());
  }
  // Room for so many bytes in all: a large text that grows takes up to three times its memory.
  void reserve(std::size_t bytes) { out_.reserve(bytes); }
  // varint length, then the bytes.
  void sized(BytesView bytes) {
    varint(bytes.size());
    raw(bytes);
  }
  void text(std::string_view s) { sized({reinterpret_cast<const std::uint8_t*>(s.data()), s.size()}); }

  std::size_t size() const { return out_.size(); }
  const Bytes& bytes() const { return out_; }
  Bytes take() { return std::move(out_); }

 private:
  void little(std::uint64_t v, int n) {
    for (int i = 0; i < n; ++i) out_.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
  }
  Bytes out_;
};

class ByteReader {
 public:
  explicit ByteReader(BytesView bytes) : bytes_(bytes) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(little(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(little(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(little(4)); }
  std::uint64_t u64() { return little(8); }

  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (failed_ || at_ >= bytes_.size()) return fail();
      const std::uint8_t b = bytes_[at_++];
      if (shift == 63 && b > 1) return fail();
      v |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) return (b == 0 && shift > 0) ? fail() : v;
    }
    return fail();
  }

  // A view into the source, empty on failure. Valid as long as the source.
  BytesView raw(std::size_t n) {
    if (failed_ || n > remaining()) {
      fail();
      return {};
    }
    BytesView v = bytes_.subspan(at_, n);
    at_ += n;
    return v;
  }
  BytesView sized(std::size_t max) {
    const std::uint64_t n = varint();
    if (n > max) {
      fail();
      return {};
    }
    return raw(static_cast<std::size_t>(n));
  }
  std::string text(std::size_t max) {
    const BytesView v = sized(max);
    return {v.begin(), v.end()};
  }
  template <class AnId>
  AnId id() {
    const BytesView v = raw(AnId::size);
    return failed_ ? AnId{} : AnId::from(v);
  }

  std::size_t remaining() const { return failed_ ? 0 : bytes_.size() - at_; }
  std::size_t position() const { return at_; }
  bool failed() const { return failed_; }
  // Everything was read and nothing failed.
  bool done() const { return !failed_ && at_ == bytes_.size(); }

 private:
  std::uint64_t little(std::size_t n) {
    if (failed_ || n > bytes_.size() - at_) return fail();
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < n; ++i) v |= static_cast<std::uint64_t>(bytes_[at_ + i]) << (8 * i);
    at_ += n;
    return v;
  }
  std::uint64_t fail() {
    failed_ = true;
    return 0;
  }

  BytesView bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

// Requires: four bytes from `at` on.
inline std::uint32_t big_endian(BytesView bytes, std::size_t at) {
  return static_cast<std::uint32_t>(bytes[at]) << 24 | static_cast<std::uint32_t>(bytes[at + 1]) << 16 |
         static_cast<std::uint32_t>(bytes[at + 2]) << 8 | bytes[at + 3];
}

}  // namespace rumor
