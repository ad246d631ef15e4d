// PortProtocol: a protocol to ask a router to forward a port to this machine: NAT-PMP (RFC 6886, by libnatpmp) or
// UPnP's Internet Gateway Device (by miniupnpc). PCP (RFC 6887), the successor of NAT-PMP, is not supported.
//
// A router is not trusted. Terminal control characters are removed from its texts. The address that it claims is only
// an address for other peers to try; the node that answers there must prove its key.
//
// Thread: one owner; calls block, little more than a second for NAT-PMP, some for UPnP, and return early once
// `stopping` says so. Memory: a few KiB.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/daemon/ports/gateway.h"

namespace rumor::daemon {

struct PortLease {
  std::uint16_t port = 0;        // outside
  std::chrono::seconds lasts{};  // 0: until it is removed
};

class PortProtocol {
 public:
  virtual ~PortProtocol() = default;
  virtual std::string name() const = 0;  // "NAT-PMP"
  // IPv4 address of the router outside. Errors: Errc::not_found (it does not speak this), Errc::io (why not).
  virtual Result<std::string> outside_address() = 0;
  // Asks for a mapping, or renews it. Outside it has the same port if that is free. Requires: outside_address() is ok.
  // Errors: Errc::io, with the router's reason.
  virtual Result<PortLease> map() = 0;
  // Removes the mapping within a second or two, whatever `stopping` says. A mapping that cannot be removed expires,
  // unless the router knows no leases.
  virtual void unmap() = 0;
};

using Stopping = std::function<bool()>;

// Those that this build has, in the order in which to try them; empty: built without the libraries.
std::vector<std::unique_ptr<PortProtocol>> port_protocols(const PortRequest& request, const Stopping& stopping);

// The message if the build has no port protocol.
inline constexpr const char* no_port_protocols =
    "this build can ask no router: install libnatpmp-dev and libminiupnpc-dev, and build again";

// Implemented in the two files that use the libraries.
inline constexpr std::chrono::seconds lease_wanted{3600};
std::unique_ptr<PortProtocol> make_natpmp(const PortRequest& request, const Stopping& stopping);
std::unique_ptr<PortProtocol> make_upnp(const PortRequest& request, const Stopping& stopping);

}  // namespace rumor::daemon
