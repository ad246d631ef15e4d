#include "runtime/base/ed25519.h"

#include <openssl/evp.h>

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor {

namespace {

using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

// The y coordinates of the points of order 1, 2, 4 and 8 in their only encoding, the sign bit left out.
constexpr std::uint8_t order_8_a[32] = {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4,
                                        0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6,
                                        0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05};
constexpr std::uint8_t order_8_b[32] = {0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b,
                                        0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39,
                                        0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a};
using Coordinate = std::array<std::uint8_t, 32>;  // little-endian

// y >= p = 2^255 - 19, where the top bit of y is clear.
bool not_reduced(const Coordinate& y) {
  return y[31] == 0x7f && y[0] >= 0xed &&
         std::all_of(y.begin() + 1, y.begin() + 31, [](auto b) { return b == 0xff; });
}

// 0, 1 or p - 1.
bool near_zero(const Coordinate& y) {
  const bool zeros = std::all_of(y.begin() + 1, y.end(), [](auto b) { return b == 0; });
  const bool ones = std::all_of(y.begin() + 1, y.begin() + 31, [](auto b) { return b == 0xff; });
  return (zeros && y[0] <= 1) || (ones && y[31] == 0x7f && y[0] == 0xec);
}

std::shared_ptr<EVP_PKEY> own(EVP_PKEY* key) {
  return {key, &EVP_PKEY_free};
}

}  // namespace

bool key_is_sound(const NodeId& key) {
  Coordinate y = key.bytes;
  y[31] &= 0x7f;
  return !not_reduced(y) && !near_zero(y) && !std::equal(y.begin(), y.end(), order_8_a) &&
         !std::equal(y.begin(), y.end(), order_8_b);
}

bool verify(const NodeId& node, BytesView message, const Signature& signature) {
  if (!key_is_sound(node)) return false;
  const auto key =
      own(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, node.bytes.data(), NodeId::size));
  DigestContext context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!key || !context) return false;
  if (EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1) return false;
  return EVP_DigestVerify(context.get(), signature.bytes.data(), Signature::size, message.data(),
                          message.size()) == 1;
}

SigningKey::SigningKey(const Seed& seed)
    : SigningKey(own(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()))) {}

SigningKey::SigningKey(std::shared_ptr<evp_pkey_st> key) : key_(std::move(key)) {
  std::size_t size = NodeId::size;
  RUMOR_CHECK(key_ && EVP_PKEY_get_raw_public_key(key_.get(), id_.bytes.data(), &size) == 1);
  RUMOR_CHECK(size == NodeId::size);
}

Signature SigningKey::sign(BytesView message) const {
  Signature signature;
  std::size_t size = Signature::size;
  DigestContext context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  RUMOR_CHECK(context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1);
  RUMOR_CHECK(EVP_DigestSign(context.get(), signature.bytes.data(), &size, message.data(), message.size()) ==
              1);
  RUMOR_CHECK(size == Signature::size);
  return signature;
}

}  // namespace rumor
