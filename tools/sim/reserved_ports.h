// ReservedPorts: TCP ports of 127.0.0.1 for processes that will start later.
//
// A free port may be taken before a process uses it. These ports are bound as long as the object lives, so the system
// gives them neither to a socket that asks for any port nor to one that dials. Only a socket that asks for the port by
// number and has SO_REUSEADDR, as a peer's sockets have, may also be bound there, listen, and return after it was
// closed (Linux: addresses are shared if both sides say so and no socket listens yet).
//
// Thread: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/base/result.h"

namespace rumor::tools {

class ReservedPorts {
 public:
  ReservedPorts() = default;
  ~ReservedPorts();
  ReservedPorts(const ReservedPorts&) = delete;
  ReservedPorts& operator=(const ReservedPorts&) = delete;

  // `count` more ports. Errors: Errc::io, the system has none left, or this process may open no more sockets.
  Result<std::vector<std::uint16_t>> reserve(std::size_t count);

 private:
  std::vector<int> sockets_;
};

}  // namespace rumor::tools
