#include "runtime/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace rumor {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "rumor: internal error, please report it: %s does not hold at %s:%d\n", condition,
               file, line);
  std::abort();
}

}  // namespace rumor
