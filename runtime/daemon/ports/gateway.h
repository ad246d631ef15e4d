// Gateway: the router between this machine's network and the outside, and whether a port of the router would help other
// peers to dial a listener here.
//
// Thread: plain functions. Linux: the default route is read from /proc/net/route.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace rumor::daemon {

// IPv4 addresses without ports.
struct Gateway {
  std::string router;
  std::string local;  // of this machine, as the router sees it
};

// The request to the router: forward connections to `port` of `gateway.local`.
struct PortRequest {
  Gateway gateway;
  std::uint16_t port = 0;
};

// Four numbers with dots between; 0.0.0.0 is none.
bool is_ipv4(const std::string& text);

// True for addresses that are not reachable from everywhere: 10/8, 172.16/12, 192.168/16, 169.254/16, 127/8, and
// 100.64/10, which providers use for many customers behind one address (RFC 1918, 3927, 6598). False for text that is
// no IPv4 address.
bool is_private(const std::string& address);

// The router of the default route with the least metric in a text like /proc/net/route; empty: there is none.
std::string default_router(std::string_view routes);

// `listening`: HOST:PORT of a listener. `router`: its address, or "auto" for that of the default route.
// Errors, with the reason and a remedy: Errc::usage (the listener is for this machine only, or in another network),
// Errc::not_found (no router), Errc::mismatch (the listener is not behind a router).
Result<PortRequest> port_request(const std::string& listening, const std::string& router);

}  // namespace rumor::daemon
