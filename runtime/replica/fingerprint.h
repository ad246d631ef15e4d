// Fingerprint: a linear hash of the weights, so that a replica can check itself after every apply.
//
// Two lanes of 32 bits: lane j is sum over i of w[i] * r_j(i) mod 2^32, r odd and drawn from the run id.
// Working mod 2^32, as the weights do, keeps it linear through wrap-around: F(state) == F(initial) + sum of
// F(update), always. A changed entry, a lost or a doubled update shows with probability 1 - 2^-64. The
// coefficients are public: this finds bugs and damage, not forgers. Cost: one multiply-mix per entry, several at a time
// (fingerprint_kernels.h).
#pragma once

#include <cstdint>
#include <span>

#include "compress/payload/update.h"
#include "runtime/base/mix64.h"
#include "runtime/base/types.h"
#include "runtime/replica/fingerprint_kernels.h"

namespace rumor {

class Fingerprinter {
 public:
  explicit Fingerprinter(const RunId& run);
  std::uint64_t seed() const { return seed_; }

  // The fingerprint of a weight vector, or of a stretch of one that begins at position `first`. O(params).
  std::uint64_t of_weights(std::span<const std::int32_t> weights, std::uint32_t first = 0) const;
  // The fingerprint of the change that an update makes. O(entries).
  std::uint64_t of_update(const ParamLayout& layout, const compress::SparseUpdate& update) const;
  // The fingerprint of one weight's change (mod 2^32) at position i.
  std::uint64_t of_change(std::uint32_t i, std::uint32_t change) const {
    const std::uint64_t r = coefficients(i);
    return lanes(change * static_cast<std::uint32_t>(r), change * static_cast<std::uint32_t>(r >> 32));
  }
  // Lane-wise sum mod 2^32.
  static std::uint64_t add(std::uint64_t a, std::uint64_t b) {
    return lanes(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b),
                 static_cast<std::uint32_t>(a >> 32) + static_cast<std::uint32_t>(b >> 32));
  }
  static std::uint64_t minus(std::uint64_t a, std::uint64_t b) {
    return lanes(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b),
                 static_cast<std::uint32_t>(a >> 32) - static_cast<std::uint32_t>(b >> 32));
  }

 private:
  static std::uint64_t lanes(std::uint32_t low, std::uint32_t high) {
    return (static_cast<std::uint64_t>(high) << 32) | low;
  }
  std::uint64_t coefficients(std::uint32_t i) const { return mix64(seed_ + i) | 0x0000'0001'0000'0001u; }
  std::uint64_t seed_;
  const FingerprintKernels* kernels_ = &fingerprint_kernels();
};

}  // namespace rumor
