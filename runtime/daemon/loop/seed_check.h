// Seeds that can never work are found before a peer starts: one without a port, and a name that nobody knows.
//
// Thread: any. Blocks while the system looks up names. A name service that does not answer is waited for once.
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

// Looks up a name with the system's name service.
Lookup look_up(const std::string& host);

struct SeedCheck {
  std::vector<std::string> warnings;  // a line each, about seeds that cannot be reached as they are written
};

// Errors: Errc::usage, for a seed that is not host:port, and when every seed has a name that nobody knows and no other
// address is known (`known_addresses`: how many were learned in earlier lives). One unknown name among others is a
// warning. `look_up` is not asked about IP addresses, nor again after it has failed.
Result<SeedCheck> check_seeds(const std::vector<std::string>& seeds, std::size_t known_addresses,
                              const std::function<Lookup(const std::string& host)>& look_up);

}  // namespace rumor::daemon
