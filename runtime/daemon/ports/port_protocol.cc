#include "runtime/daemon/ports/port_protocol.h"

namespace rumor::daemon {

std::vector<std::unique_ptr<PortProtocol>> port_protocols([[maybe_unused]] const PortRequest& request,
                                                          [[maybe_unused]] const Stopping& stopping) {
  std::vector<std::unique_ptr<PortProtocol>> all;
#ifdef RUMOR_NATPMP
  all.push_back(make_natpmp(request, stopping));  // one packet to the router, and its answer
#endif
#ifdef RUMOR_UPNP
  all.push_back(make_upnp(request, stopping));  // searches the whole network for a router
#endif
  return all;
}

}  // namespace rumor::daemon
