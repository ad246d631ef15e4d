#include "tools/sim/reserved_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/text.h"

namespace rumor::tools {

ReservedPorts::~ReservedPorts() {
  for (const int s : sockets_) close(s);
}

Result<std::vector<std::uint16_t>> ReservedPorts::reserve(std::size_t count) {
  const auto refused = [count] {
    return Error{Errc::io, str("cannot reserve ", count, " ports on 127.0.0.1: ", std::strerror(errno))};
  };
  std::vector<std::uint16_t> ports;
  while (ports.size() < count) {
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0) return refused();
    sockets_.push_back(s);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const int yes = 1;
    // In this order: bound alone, so that nobody has the port; then shared.
    if (bind(s, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        getsockname(s, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
        setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0)
      return refused();
    ports.push_back(ntohs(address.sin_port));
  }
  return ports;
}

}  // namespace rumor::tools
