// SHA-256 (FIPS 180-4) through OpenSSL's libcrypto: ids of runs, digests of replicas, hashes of payloads.
#pragma once

#include "runtime/base/types.h"

namespace rumor {

Hash256 sha256(BytesView bytes);

}  // namespace rumor
