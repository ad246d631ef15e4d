// NetworkModel: delay, jitter and bandwidth of the links of a simulated run: a preset, or a file.
//
// Each pair of hosts has a latency drawn once; each host has an uplink and a downlink that all its links share
// (fabric.h).
//
// Thread: plain values.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/time.h"
#include "runtime/sim/world/fabric.h"

namespace rumor::sim {

struct NetworkModel {
  std::string name = "lan";
  Duration latency_min{100}, latency_max{300};  // one way
  Duration jitter{20};                          // added, uniform from 0
  std::uint64_t up_bytes_per_second = 125'000'000, down_bytes_per_second = 125'000'000;

  // lan (1 Gbit/s, 0.1-0.3 ms), wan (100 Mbit/s, 10-80 ms), home (20 up / 100 down Mbit/s, 5-60 ms).
  // Errors: Errc::usage naming these.
  static Result<NetworkModel> preset(const std::string& name);
  // A TOML text with latency_ms = [min, max], jitter_ms, up_mbit, down_mbit. Errors: Errc::usage.
  static Result<NetworkModel> parse(std::string_view text, const std::string& source);
};

// The fabric's options that a model decides.
FabricOptions fabric_of(const NetworkModel& model);

}  // namespace rumor::sim
