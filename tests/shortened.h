// shortened(n): n, or a third where a sanitizer makes everything several times as slow. For how long a case runs that
// has gone all its ways after a third.
#pragma once

#include <cstdint>

#include "runtime/base/sanitized.h"

namespace rumor::test {

constexpr std::uint64_t shortened(std::uint64_t n) {
#if defined(RUMOR_SANITIZED)
  return n / 3;
#else
  return n;
#endif
}

}  // namespace rumor::test
