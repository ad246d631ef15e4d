// Random values of the operating system, for names and secrets.
//
// Thread: any.
#pragma once

#include <openssl/rand.h>

#include "runtime/base/check.h"

namespace rumor::daemon {

// Requires: any bytes make a Value.
template <class Value>
Value system_random() {
  Value value{};
  RUMOR_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(&value), sizeof value) == 1);
  return value;
}

}  // namespace rumor::daemon
