// Fabric: connections between simulated hosts that behave as TCP does, and fail as TCP does.
//
// Frames of one direction arrive in order or not at all; control may overtake data only while that waits for
// the uplink, as in the real transport. An uplink serves all data of its host in turn. What may go wrong: a
// direction stalls and goes on, or swallows everything from now on (half-open); a connection is reset and
// loses the last part of what is on its way; an ordered pair of hosts is blocked, which stalls what is
// between them; a host's links become slow.
//
//   a frame takes: wait for the uplink + bytes / up + latency + jitter, then wait for the downlink + bytes /
//   down
//
// The fabric asks its owner to call event() at certain times, and returns what has arrived. It knows no protocol.
//
// Thread: one owner. Integers only; one seeded generator. Costs: an event a control frame, three a data
// frame. Memory: what is on its way.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/base/prng.h"
#include "runtime/base/time.h"
#include "runtime/base/types.h"

namespace rumor::sim {

// Length prefix and TLS record around a frame.
inline constexpr std::size_t framing_bytes = 4 + 22;

using HostId = std::uint32_t;
using ConnectionId = std::uint32_t;

struct FabricOptions {
  std::size_t hosts = 0;
  std::uint64_t seed = 1;
  Duration latency_min{1000}, latency_max{50'000}, jitter{1000};  // one way; drawn once for each pair
  std::uint64_t bytes_per_second = 12'500'000;                    // up, and down
  std::uint64_t down_bytes_per_second = 0;                        // where that differs; 0: it does not
  // Control waits for the downlink as well, and each frame costs its own size there. Else data alone does, each frame
  // at the size of the newest: so the seeds of storms were drawn, and they keep their traces.
  bool shared_downlink = false;
  std::size_t backlog_high = 1 << 20, backlog_low = 256 << 10;  // unsent bytes of a direction
};

// One of the two ends of a connection: side 0 has dialled.
struct End {
  ConnectionId connection = 0;
  int side = 0;
};

// A frame, or the news that the connection is over, that has come to an end of a connection.
struct Arrival {
  End at;
  bool closed = false;  // the other end has closed, or the connection was reset
  bool control = false;
  Bytes frame;
};

struct FabricEvent {
  enum class Kind : std::uint8_t { left, reach, deliver };
  Kind kind = Kind::reach;
  std::uint8_t side = 0;  // of the receiver
  std::uint8_t lane = 0;
  ConnectionId connection = 0;  // for `left` the sending host
  std::uint32_t bytes = 0;      // for `reach` the size of the frame, where the downlink is shared; else 0
};

class Fabric {
 public:
  using Schedule = std::function<void(TimePoint at, FabricEvent event)>;
  // The unsent bytes of an end have crossed backlog_high (true) or fallen below backlog_low (false).
  using Backlog = std::function<void(End end, bool full)>;

  Fabric(FabricOptions options, Schedule schedule, Backlog backlog);

  ConnectionId open(HostId dialler, HostId acceptor);
  HostId host(End end) const { return connections_[end.connection].host[end.side]; }
  bool is_open(End end) const { return connections_[end.connection].open[end.side]; }
  std::size_t connections() const { return connections_.size(); }

  // From `end` to the other one. Nothing happens when `end` is closed.
  void send(End end, Bytes frame, bool control, TimePoint now);
  // `end` is closed. The other end learns it after the frames that were sent before.
  void close(End end, TimePoint now);
  // Both ends are closed. Each learns it after a part of what is on its way to it; the rest is lost.
  void reset(ConnectionId connection, TimePoint now);
  // Both ends are closed. Frames on their way are lost, and no end learns it from the fabric: the owner tells both.
  void cut(ConnectionId connection);
  // The host is gone: its ends are closed. Silently: the other ends learn nothing (the power has failed).
  void drop_host(HostId host, bool silently, TimePoint now);

  // Replaces the marks of FabricOptions.
  void set_backlog_marks(std::size_t high, std::size_t low) {
    options_.backlog_high = high;
    options_.backlog_low = low;
  }

  // A scheduled event is due. True when something is ready: take() it, or call event() again later with the
  // same event (the host is busy).
  bool event(const FabricEvent& event, TimePoint now);
  // Empty when the end has been closed meanwhile.
  std::optional<Arrival> take(const FabricEvent& event);

  // ---- faults ----
  void stall(End towards, bool on, TimePoint now);
  void swallow(End towards) { directions_[index(towards)].swallows = true; }
  void block(HostId from, HostId to, bool on, TimePoint now);
  bool blocked(HostId from, HostId to) const { return blocked_[from * options_.hosts + to] != 0; }
  void unblock_all(TimePoint now);
  // Divides the bandwidth of a host; 1 is full speed.
  void throttle(HostId host, std::uint32_t divisor, TimePoint now);
  // One of the host's open connections; nothing when it has none.
  std::optional<ConnectionId> some_connection(HostId host, Prng& prng) const;

  Duration latency(HostId a, HostId b) const;
  std::uint64_t sent_bytes(HostId host) const { return sent_bytes_[host]; }
  // Handed over and not yet on the wire, of one end.
  std::size_t unsent(End from) const;

 private:
  struct Flight {
    std::uint64_t order = 0;
    Bytes frame;
    bool control = false, closes = false;
  };
  // A data frame that waits for an uplink.
  struct Waiting {
    End towards;
    std::size_t bytes;
  };
  struct Uplink {
    std::deque<Waiting> queue;
    bool busy = false;
    Duration owed{0};     // to control frames that went before; an idle uplink works it off
    TimePoint paid_until{};  // until when that has been counted
  };
  // By receiving end.
  struct Direction {
    std::deque<Flight> lanes[2];  // control, data
    TimePoint reach[2]{};
    std::uint64_t sent = 0;
    bool swallows = false, ended = false;
    bool stalled = false;
    std::uint32_t parked[2]{};  // flights that wait for the end of a stall or block
    std::size_t leaving_bytes = 0, parked_bytes = 0;
    bool backlogged = false;
  };
  struct Connection {
    HostId host[2];
    bool open[2] = {true, true};
  };

  static std::size_t index(End end) {
    return 2 * std::size_t{end.connection} + static_cast<unsigned>(end.side);
  }
  Duration cost(HostId host, std::size_t bytes, bool down = false) const;
  bool held(End towards) const;
  void release(End towards, TimePoint now);
  void push(End towards, Flight flight, TimePoint now);
  void serve(HostId from, TimePoint now);
  void pay_off(Uplink& uplink, TimePoint now);
  void left(HostId from, TimePoint now);
  void reached(const FabricEvent& event, TimePoint now);
  bool park(End at, std::uint8_t lane);
  void schedule(TimePoint at, FabricEvent::Kind kind, End end, int lane, std::size_t bytes = 0) {
    schedule_(at, {kind, static_cast<std::uint8_t>(end.side), static_cast<std::uint8_t>(lane), end.connection,
                   options_.shared_downlink ? static_cast<std::uint32_t>(bytes) : 0});
  }
  void watch_backlog(End towards);
  void forget(End towards);

  FabricOptions options_;
  Schedule schedule_;
  Backlog backlog_;
  Prng prng_;
  std::vector<Connection> connections_;
  std::vector<Direction> directions_;
  std::vector<std::vector<ConnectionId>> of_host_;
  std::vector<Uplink> uplinks_;
  std::vector<TimePoint> down_free_;
  std::vector<std::uint32_t> throttle_;
  std::vector<std::uint8_t> blocked_;
  std::vector<std::uint64_t> sent_bytes_;
};

}  // namespace rumor::sim
