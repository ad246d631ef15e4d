// The version of this build, as `rumor --version` and /status show it.
#pragma once

namespace rumor::daemon {

// Such as "0.1.0".
const char* version();

}  // namespace rumor::daemon
