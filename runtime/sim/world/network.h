// Network: delay, jitter and bandwidth of the links between simulated nodes.
//
// Each ordered pair of nodes has a latency drawn once; each node has an uplink and a downlink that all its
// links share. A frame takes
//   wait for the uplink + bytes / up + latency + jitter, then wait for the downlink + bytes / down.
// Control goes before data that waits for the uplink, as in the real transport, but for the rest of the piece
// that is leaving. The downlink takes frames in the order in which they reach it.
//
// Thread: one owner. Integers only, one seeded generator: the same seed gives the same times everywhere.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/prng.h"
#include "runtime/base/result.h"
#include "runtime/base/time.h"

namespace rumor::sim {

// Length prefix and TLS record around a frame.
inline constexpr std::size_t framing_bytes = 4 + 22;

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

class Network {
 public:
  Network(NetworkModel model, std::size_t nodes, std::uint64_t seed);

  // When a frame handed to `from`'s uplink at `now` has reached `to`'s downlink.
  TimePoint reaches(std::size_t from, std::size_t to, std::size_t bytes, bool control, TimePoint now);
  // When a frame that has reached it at `now` is in `to`'s hands. Call it at that time: what reaches it
  // earlier goes before.
  TimePoint arrives(std::size_t to, std::size_t bytes, TimePoint now);
  // Both at once, for whole models: the downlink is kept for it from now on.
  TimePoint deliver(std::size_t from, std::size_t to, std::size_t bytes, TimePoint now) {
    return arrives(to, bytes, reaches(from, to, bytes, false, now));
  }
  // Latency of the pair, one way.
  Duration latency(std::size_t from, std::size_t to) const { return latency_[from * nodes_ + to]; }
  // Bytes waiting on the uplink of `from` at `now`, and when they will have fallen to `bytes`: the first time at which
  // waiting() says so.
  std::size_t waiting(std::size_t from, TimePoint now) const;
  TimePoint falls_to(std::size_t from, std::size_t bytes) const;

 private:
  static Duration cost(std::size_t bytes, std::uint64_t bytes_per_second);

  NetworkModel model_;
  std::size_t nodes_;
  Prng prng_;
  std::vector<Duration> latency_;
  struct Uplink {
    TimePoint free, control_free;  // when what has been handed over has left; control alone
    std::size_t piece = 0;         // of the last data
  };
  std::vector<Uplink> up_;
  std::vector<TimePoint> down_free_;
};

}  // namespace rumor::sim
