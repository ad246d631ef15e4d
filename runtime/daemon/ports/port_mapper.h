// PortMapper: keeps a port of the router open for a listener of this machine, on a thread of its own.
//
// It asks the protocols of port_protocol.h one after another until one gives a mapping. It renews the mapping at half
// its lease (and at least every ten minutes, since routers restart), and asks again every five minutes while there is
// none. It reports changes of the result on the event loop.
//
// Thread: construct, stop() and destroy on the event loop's thread, while the io_context exists. The libraries cannot
// be interrupted everywhere: a destructor that has waited two seconds leaves the thread behind. That thread then ends
// by itself and touches only its own data.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "runtime/daemon/ports/gateway.h"
#include "runtime/daemon/ports/port_protocol.h"

namespace rumor::daemon {

struct PortNews {
  std::string address;  // where others reach the listener, "203.0.113.7:7001"; empty: nowhere
  std::string text;     // for people: the protocol, or the reason of the failure and a remedy
  bool operator==(const PortNews&) const = default;
};

// One round: keeps `working` going, or else finds a protocol that gives a mapping and puts it there. `again`: when to
// come back. For PortMapper's thread, and for tests.
PortNews open_port(const PortRequest& request, const Stopping& stopping, std::unique_ptr<PortProtocol>& working,
                   std::chrono::seconds& again);

// Describes the router in a line for people, without requesting a port. Errors: Errc::not_found, Errc::io.
Result<std::string> ask_router(const PortRequest& request);

class PortMapper {
 public:
  using Told = std::function<void(const PortNews&)>;

  PortMapper(asio::io_context& loop, const PortRequest& request, Told told);
  ~PortMapper();  // stop(), then waits two seconds for the mapping to be taken back
  PortMapper(const PortMapper&) = delete;
  PortMapper& operator=(const PortMapper&) = delete;

  // Begins to remove the mapping, and returns at once. No report follows.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rumor::daemon
