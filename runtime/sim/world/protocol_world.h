// ProtocolWorld: many peers in virtual time. A peer is the protocol alone with a real replica (protocol_peer.h), or a
// whole node that trains (training_peer.h).
//
// Each host has a disk (its newest checkpoints), a clock of its own, a processor that may be slow or paused, and
// connections through a Fabric. Drivers decide what happens to hosts: a training run (cluster.h), a storm
// (faulty_run.h), a measurement (spreading.h). Observers watch what must hold (checkers.h). The protocol and the bytes
// it sends are those of a real daemon.
//
// One seed gives one trace: trace() is equal in all builds.
//
// Thread: one owner, no threads inside. Costs: two events and one handler call a frame.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/sim/world/event_queue.h"
#include "runtime/sim/world/fabric.h"
#include "runtime/sim/world/local_clock.h"
#include "runtime/sim/world/protocol_peer.h"

namespace rumor::sim {

class ProtocolWorld;

// A host that does not run the protocol but speaks it, or tries to (hostile.h).
class Stranger {
 public:
  virtual ~Stranger() = default;
  virtual void on_link_up(End end, const NodeId& peer) = 0;
  virtual void on_frame(End end, BytesView frame) = 0;
  virtual void on_closed(End end) = 0;
  virtual void on_turn() = 0;  // ten times a second
};

// An invariant that a run has broken; a person reads this line first.
struct Violation {
  std::string invariant;  // "I2"
  std::string text;
  HostId host = 0;
  UpdateKey key;
  TimePoint at;
};

struct Host {
  NodeId id;
  std::string address;
  std::vector<std::string> seeds;
  std::unique_ptr<SimPeer> peer;  // null while down
  std::unique_ptr<Stranger> stranger;
  std::uint64_t life = 0;  // counts starts
  StreamId stream;
  std::uint64_t seq = 0;
  LocalClock clock;
  TimePoint wake_at = never, busy_until{};
  Duration handling{0};                 // of a frame, by a slow processor
  Duration computed{0};                 // by training, all lives together
  std::vector<Bytes> disk;              // checkpoints, the newest last
  MemoryDisk files;                     // log and downloads, as the last process left them
  std::vector<std::string> known;       // addresses kept on disk
  bool crash_armed = false;             // dies in the middle of its next outbox
  bool refuses = false, hangs = false;  // dials to it
  bool dead_for_good = false;
  bool mute = false;              // publishes nothing
  std::uint64_t lost_before = 0;  // updates_lost of earlier lives
  std::uint32_t spins = 0;

  bool up() const { return peer != nullptr; }
};

class WorldObserver {
 public:
  virtual ~WorldObserver() = default;
  virtual void started(HostId) {}
  virtual void ended(HostId) {}  // its peer is still there, for the last time
  virtual void sealed(HostId, const gossip::StoredUpdate&) {}
  // The update came in a frame of `from`.
  virtual void applied(HostId, const gossip::UpdateHeader&, HostId /*from*/) {}
  virtual void replaced(HostId) {}
  virtual void arrived(HostId /*to*/, HostId /*from*/, BytesView /*frame*/) {}
  virtual void asked(HostId, const gossip::Effect&) {}  // by its peer; it is carried out next
  virtual void turned(HostId) {}  // a handler has returned
};

// A fault of the disk, which a restart finds in the checkpoint that it reads.
enum class DiskFault : std::uint8_t { none, lost, stale, torn, flipped, foreign };

struct WorldOptions {
  std::size_t hosts = 4;  // of all kinds, those that start later included
  std::uint64_t seed = 1;
  FabricOptions fabric;           // hosts and seed are taken from above
  SimModel model;                 // when payload_bytes is 0
  std::size_t payload_bytes = 0;  // else: no weights, payloads of this size
  gossip::CodingRule coding = gossip::CodingRule::automatic;
  bool mixed_codings = false;          // each host another rule
  PeerMaker make_peer;                 // null: the protocol alone, with `model` or payloads
  std::uint32_t invariants_every = 8;  // turns between two check_invariants()
  // Dials that time out for ever, as into a home network; null: none.
  std::function<bool(HostId from, HostId to)> cannot_dial;
  // Dials that are refused, and frames that are lost although a connection loses none; null: none.
  std::function<bool(HostId from, HostId to)> refuses;
  std::function<bool(HostId from, HostId to, const gossip::OutFrame&)> loses;
  bool clocks_begin_at_start = true;  // each process counts from its start; else all clocks show the world's time
};

class ProtocolWorld {
 public:
  explicit ProtocolWorld(WorldOptions options);
  ~ProtocolWorld();

  void observe(WorldObserver& observer) { observers_.push_back(&observer); }

  // ---- driving ----
  TimePoint now() const { return now_; }
  // Handles events up to `until`; stops early at the first violation.
  void run_until(TimePoint until);
  // Handles one event, at `until` or before. False: there is none, or something is violated.
  bool step(TimePoint until = never);
  void at(TimePoint when, std::function<void()> call);
  void violate(std::string invariant, HostId host, std::string text, const UpdateKey& key = {});
  const std::optional<Violation>& violation() const { return violation_; }

  // ---- hosts ----
  std::size_t hosts() const { return hosts_.size(); }
  Host& host(HostId i) { return hosts_[i]; }
  const Host& host(HostId i) const { return hosts_[i]; }
  // A new process: a new stream, the replica from the disk as the fault leaves it, or empty. It handles nothing until
  // `wait` has passed. The host stays down when WorldOptions::make_peer makes none.
  void start(HostId i, DiskFault fault = DiskFault::none, Duration wait = Duration{0});
  // Ends at once. Silently: no connection learns of it.
  void kill(HostId i, bool silently);
  // Both ends of the connection learn at once that it is over; what is on its way is lost.
  void cut(ConnectionId connection, const std::string& reason);
  // Says goodbye first, and writes a checkpoint.
  void leave(HostId i);
  void save_checkpoint(HostId i);
  // Runs on the processor of host `i` at its next chance.
  void publish(HostId i);
  void set_finished(HostId i, bool finished);
  // Calls the peer of host `i`, which is up, and carries out what it asks for. `from`: whose frame it handles, or `i`.
  template <class Call>
  void turn(HostId i, HostId from, Call call) {
    gossip::Outbox out;
    call(out);
    after_turn(i, from, out);
  }
  // Call it after the host's clock was moved.
  void clock_changed(HostId i) { arm(i); }
  Fabric& fabric() { return fabric_; }
  Prng& chance() { return chance_; }

  // For strangers: dials a host, sends on a connection.
  void stranger_dials(HostId from, HostId to);
  void stranger_sends(End end, Bytes frame) { fabric_.send(end, std::move(frame), true, now_); }

  std::uint64_t trace() const { return trace_; }
  std::uint64_t events() const { return events_; }
  // The default address of a host, unless its driver sets another: a letter, then the number of the host.
  static std::string address_of(HostId i);
  static gossip::LinkId link_of(End end) {
    return gossip::LinkId{2 * std::uint64_t{end.connection} + static_cast<unsigned>(end.side)};
  }
  static End end_of(gossip::LinkId link) {
    const auto number = static_cast<std::uint64_t>(link);
    return {static_cast<ConnectionId>(number / 2), static_cast<int>(number % 2)};
  }
  const WorldOptions& options() const { return options_; }

 private:
  struct Event {
    enum class Kind : std::uint8_t { fabric, wake, dialled, backlog, call, computed };
    Kind kind = Kind::call;
    FabricEvent fabric;
    HostId host = 0, other = 0;
    std::uint64_t value = 0, life = 0;
  };

  void after_turn(HostId i, HostId from, gossip::Outbox& out);
  void carry_out(HostId i, gossip::Effect& effect);
  void dial(HostId i, const std::string& address);
  void report_closed(HostId i, gossip::LinkId link, const std::string& reason);
  void handle(const Event& event);
  void on_fabric(const Event& event);
  void on_wake(const Event& event);
  void on_dialled(const Event& event);
  void on_computed(const Event& event);
  void on_arrival(Arrival& arrival);
  void arm(HostId i);
  StartedPeer protocol_peer(const PeerStart& start);
  std::unique_ptr<PeerStore> empty_store();
  std::optional<Bytes> read_disk(HostId i, DiskFault fault);
  void start_peer(HostId i, DiskFault fault, std::uint64_t chance_seed);
  void write_checkpoint(Host& host, Bytes bytes);
  void damage_files(MemoryDisk& disk, DiskFault fault);
  void trace(std::uint64_t kind, std::uint64_t a, BytesView bytes = {});

  WorldOptions options_;
  PayloadPool pool_;
  Prng chance_;  // of the world; the hosts have their own
  EventQueue<Event> queue_;
  std::vector<std::function<void()>> calls_;
  std::vector<std::uint64_t> free_calls_;
  TimePoint now_{};
  Fabric fabric_;
  std::vector<Host> hosts_;
  std::vector<WorldObserver*> observers_;
  std::optional<Violation> violation_;
  std::uint64_t trace_ = 0, events_ = 0, turns_ = 0;
};

}  // namespace rumor::sim
