#include "runtime/daemon/status/version.h"

namespace rumor::daemon {

const char* version() {
  return RUMOR_VERSION;
}

}  // namespace rumor::daemon
