// ReservedPorts: TCP ports of 127.0.0.1 for processes that are yet to start.
//
// A port that was free a moment ago may be somebody else's when it is wanted. These are bound for as long as the object
// lives, so the system gives them to nobody, neither to who asks for any port nor to who dials; only a socket that asks
// for the port by number and has SO_REUSEADDR, as a peer's have, may be bound there as well, listen, and come again
// after it was closed (Linux: addresses are shared when both sides say so and nobody listens yet).
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
