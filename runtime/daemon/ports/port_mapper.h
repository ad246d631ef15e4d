// PortMapper: keeps a port of the router open for a listener of this machine, on a thread of its own.
//
// It asks each protocol of port_protocol.h in turn until one gives a mapping, renews that at half its lease (and every
// ten minutes at least, since routers restart), and asks again every five minutes while there is none. What it finds is
// told on the event loop, only when it changes.
//
// Thread: construct, stop() and destroy on the event loop's thread, while the io_context is there. The libraries cannot
// be interrupted everywhere: a destructor that has waited two seconds leaves the thread behind, which then ends by
// itself and touches nothing but its own.
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
  std::string text;     // for people: how, or why not and what would help
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

  // Begins to take the mapping back, and returns at once. Nothing is told any more.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace rumor::daemon
