#include "runtime/daemon/ports/gateway.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "gossip/asio/address.h"
#include "runtime/base/text.h"

namespace rumor::daemon {

namespace {

std::string text_of(in_addr address) {
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

// Where packets to `router` would come from. Nothing is sent.
Result<std::string> local_address(const std::string& router) {
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(9);
  inet_pton(AF_INET, router.c_str(), &there.sin_addr);
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in here{};
  socklen_t size = sizeof here;
  const bool known = socket >= 0 && connect(socket, reinterpret_cast<sockaddr*>(&there), sizeof there) == 0 &&
                     getsockname(socket, reinterpret_cast<sockaddr*>(&here), &size) == 0;
  if (socket >= 0) close(socket);
  if (!known) return Error{Errc::not_found, str("no way leads to the router ", router)};
  return text_of(here.sin_addr);
}

Result<std::string> router_of(const std::string& wanted) {
  if (wanted != "auto") {
    if (is_ipv4(wanted)) return wanted;
    return Error{Errc::usage, str("'", wanted, "' is no IPv4 address of a router; give one, or auto")};
  }
  std::ifstream file("/proc/net/route");
  std::stringstream routes;
  routes << file.rdbuf();
  std::string found = default_router(routes.str());
  if (found.empty()) return Error{Errc::not_found, "this machine has no default route, so no router to ask"};
  return found;
}

}  // namespace

bool is_ipv4(const std::string& text) {
  in_addr parsed;
  return inet_pton(AF_INET, text.c_str(), &parsed) == 1 && parsed.s_addr != 0;
}

bool is_private(const std::string& address) {
  in_addr parsed;
  if (inet_pton(AF_INET, address.c_str(), &parsed) != 1) return false;
  const std::uint32_t a = ntohl(parsed.s_addr);
  return a >> 24 == 10 || a >> 24 == 127 || a >> 20 == (172u << 4 | 1) || a >> 16 == (192u << 8 | 168) ||
         a >> 16 == (169u << 8 | 254) || a >> 22 == (100u << 2 | 1);
}

std::string default_router(std::string_view routes) {
  constexpr unsigned up_and_gateway = 3;  // RTF_UP, RTF_GATEWAY
  std::istringstream lines{std::string(routes)};
  std::string line, best;
  long best_metric = std::numeric_limits<long>::max();
  while (std::getline(lines, line)) {
    std::istringstream in(line);
    std::string device;
    std::uint32_t destination = 0, router = 0, flags = 0, mask = 0;
    long references = 0, use = 0, metric = 0;
    in >> device >> std::hex >> destination >> router >> flags >> std::dec >> references >> use >> metric >> std::hex >>
        mask;
    if (!in || destination != 0 || mask != 0 || (flags & up_and_gateway) != up_and_gateway) continue;
    if (metric >= best_metric) continue;
    best_metric = metric;
    best = text_of(in_addr{router});  // the kernel prints it in memory order
  }
  return best;
}

Result<PortRequest> port_request(const std::string& listening, const std::string& router) {
  const auto address = net::parse_address(listening);
  if (!address) return address.error();
  const std::string& host = address->host;
  const bool everywhere = host == "0.0.0.0" || host == "::";
  if (!everywhere && host.find(':') != std::string::npos)
    return Error{Errc::mismatch, str("IPv6 addresses need no mapping; let port ", address->port,
                                     " through the router's firewall")};
  const bool to_loopback = router != "auto" && net::is_loopback(router);  // a router that is a program of this machine
  if (net::is_loopback(host) && !to_loopback)
    return Error{Errc::usage,
                 str("only this machine reaches ", listening, "; listen for others: --listen 0.0.0.0:", address->port)};
  const auto found = router_of(router);
  if (!found) return found.error();
  const auto local = local_address(*found);
  if (!local) return local.error();
  if (!everywhere && host != *local)
    return Error{Errc::usage, str("the router ", *found, " leads to this machine as ", *local, ", not as ", host,
                                  "; listen at --listen 0.0.0.0:", address->port)};
  if (!is_private(*local)) return Error{Errc::mismatch, str(*local, " is a public address and needs no mapping")};
  return PortRequest{{*found, *local}, address->port};
}

}  // namespace rumor::daemon
