// Seeds that can never work are found before a peer starts: one without a port, and a name that nobody knows.
//
// Thread: any. Blocks for as long as the system looks up a name.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace rumor::daemon {

enum class Lookup {
  found,
  unknown,  // the name service reports that the name does not exist
  failed,   // no answer: the name may be there later
};

// Looks up a host with the system's name service. An IP address is always found.
Lookup look_up(const std::string& host);

struct SeedCheck {
  std::vector<std::string> warnings;  // a line each, about seeds that cannot be reached as they are written
};

// Errors: Errc::usage, for a seed that is not host:port, and when every seed has a name that nobody knows and no other
// address is known (`known_addresses`: how many were learned in earlier lives). One unknown name among others is a
// warning.
Result<SeedCheck> check_seeds(const std::vector<std::string>& seeds, std::size_t known_addresses,
                              const std::function<Lookup(const std::string& host)>& look_up);

}  // namespace rumor::daemon
