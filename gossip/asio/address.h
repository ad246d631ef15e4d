// host:port as people write it: "127.0.0.1:7001", "[::1]:7001", "host.example:7001".
//
// Addresses also arrive from peers, so everything here treats its text as hostile: bounded length, a small
// alphabet, no name look-up. Resolving a name is the dialer's business.
//
// Thread: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rumor::net {

struct Address {
  std::string host;  // without brackets
  std::uint16_t port = 0;

  // "host:port", an IPv6 host in brackets: parse_address() reads it back.
  std::string text() const;
};

// Accepts an IPv4 literal, a bracketed IPv6 literal or a host name, each with a port in 0..65535. Port 0
// means "any free port" to a listener and is refused by the dialer. Errors: Errc::usage, naming the text and
// the right form.
Result<Address> parse_address(std::string_view text);

// True when only this machine can reach the host: 127.0.0.0/8, ::1 (also as ::ffff:127.x.y.z) and
// "localhost". Any other name counts as reachable from outside, whatever it resolves to.
bool is_loopback(const std::string& host);

}  // namespace rumor::net
