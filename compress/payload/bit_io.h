// Bits to bytes and back, a 64-bit word at a time: the bit stream of compress/FORMAT.md chapter 2 (least
// significant bit first, nothing aligned).
//
// BitWriter: owns the growing bytes. BitReader: looks at bytes of someone else, which must outlive it; never
// reads past their end. The caller proves that bits are there (remaining()) before it takes them; take()
// beyond the end yields zero bits, so a wrong proof shows as a wrong value, not as a wild read.
//
// Thread: plain values.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "runtime/base/types.h"

namespace rumor::compress {

inline std::uint64_t from_little(std::uint64_t word) {
  if constexpr (std::endian::native == std::endian::little) return word;
  return __builtin_bswap64(word);
}

class BitWriter {
 public:
  // Takes over `head`, whole bytes that come before the bit stream.
  explicit BitWriter(Bytes head) : out_(std::move(head)) {}

  // Bits written so far, the whole bytes of the head among them.
  std::uint64_t size() const { return std::uint64_t{8} * out_.size() + used_; }

  // Requires: width <= 56, value < 2^width.
  void put(std::uint64_t value, unsigned width) {
    word_ |= value << used_;
    used_ += width;
    if (used_ < 64) return;
    flush_word();
    used_ -= 64;
    // The upper `used_` bits of value did not fit (width - used_ >= 1, so the shift is below 64).
    word_ = value >> (width - used_);
  }

  // `zeros` zero bits, then a one.
  void put_unary(std::uint64_t zeros) {
    for (; zeros >= 48; zeros -= 48) put(0, 48);
    put(std::uint64_t{1} << zeros, static_cast<unsigned>(zeros) + 1);
  }

  // Elias gamma. Requires: 1 <= value <= 2^32.
  void put_gamma(std::uint64_t value) {
    const unsigned low_bits = static_cast<unsigned>(std::bit_width(value)) - 1;
    put_unary(low_bits);
    put(value - (std::uint64_t{1} << low_bits), low_bits);
  }

  // Fills the last byte with zero bits and hands the bytes out.
  Bytes take() {
    for (unsigned bit = 0; bit < used_; bit += 8) out_.push_back(static_cast<std::uint8_t>(word_ >> bit));
    word_ = 0;
    used_ = 0;
    return std::move(out_);
  }

 private:
  void flush_word() {
    const std::uint64_t little = from_little(word_);
    const std::size_t at = out_.size();
    out_.resize(at + 8);
    std::memcpy(out_.data() + at, &little, 8);
  }

  Bytes out_;
  std::uint64_t word_ = 0;
  unsigned used_ = 0;  // bits of word_ in use, below 64
};

class BitReader {
 public:
  explicit BitReader(BytesView bytes) : bytes_(bytes) {}

  std::uint64_t position() const { return at_; }
  std::uint64_t size() const { return std::uint64_t{8} * bytes_.size(); }
  std::uint64_t remaining() const { return at_ < size() ? size() - at_ : 0; }
  void skip(std::uint64_t bits) { at_ += bits; }

  // Requires: width <= 56.
  std::uint64_t take(unsigned width) {
    const std::uint64_t word = word_at(at_ >> 3) >> (at_ & 7);
    at_ += width;
    return word & ((std::uint64_t{1} << width) - 1);
  }

  // The zeros before the next one bit, and goes past that one bit; -1 when there is no one bit up to the end.
  std::int64_t take_unary() {
    std::uint64_t zeros = 0;
    while (at_ < size()) {
      const unsigned valid = 64 - (at_ & 7);
      const std::uint64_t word = word_at(at_ >> 3) >> (at_ & 7);
      if (word != 0) {
        const unsigned run = static_cast<unsigned>(std::countr_zero(word));
        at_ += run + 1;
        return static_cast<std::int64_t>(zeros + run);
      }
      zeros += valid;
      at_ += valid;
    }
    return -1;
  }

  // The eight bytes from `byte` on; zeros past the end.
  std::uint64_t word_at(std::uint64_t byte) const {
    std::uint64_t word = 0;
    if (byte + 8 <= bytes_.size()) {
      std::memcpy(&word, bytes_.data() + byte, 8);
      return from_little(word);
    }
    for (unsigned i = 0; byte + i < bytes_.size(); ++i) word |= std::uint64_t{bytes_[byte + i]} << (8 * i);
    return word;
  }

 private:
  BytesView bytes_;
  std::uint64_t at_ = 0;
};

// Positions of successive one bits from some bit on: each costs one trailing-zero count and no reload within
// a word.
class OneBits {
 public:
  OneBits(const BitReader& source, std::uint64_t from) : source_(source), base_(from & ~std::uint64_t{63}) {
    word_ = source_.word_at(base_ >> 3) & (~std::uint64_t{0} << (from & 63));
  }

  static constexpr std::uint64_t none = ~std::uint64_t{0};

  // Bit position of the next one bit; `none` past the end.
  std::uint64_t next() {
    while (word_ == 0) {
      base_ += 64;
      if (base_ >= source_.size()) return none;
      word_ = source_.word_at(base_ >> 3);
    }
    const std::uint64_t position = base_ + static_cast<unsigned>(std::countr_zero(word_));
    word_ &= word_ - 1;
    return position;
  }

 private:
  const BitReader& source_;
  std::uint64_t base_;
  std::uint64_t word_;
};

}  // namespace rumor::compress
