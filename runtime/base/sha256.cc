#include "runtime/base/sha256.h"

#include <openssl/sha.h>

namespace rumor {

Hash256 sha256(BytesView bytes) {
  Hash256 hash;
  static_assert(Hash256::size == SHA256_DIGEST_LENGTH);
  SHA256(bytes.data(), bytes.size(), hash.bytes.data());
  return hash;
}

}  // namespace rumor
