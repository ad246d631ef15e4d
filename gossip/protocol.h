// Protocol: membership, links, spreading, repair and joining, as one function from (input, time) to effects.
//
// gossip/PROTOCOL.md is its specification; this class composes overlay.h (member table and links), spread.h
// (announce, pull, subscribe) and repair.h (digests, ranges, snapshots); or, where peers have models of their own,
// overlay.h and copies.h.
//
// Thread: one owner. No clock, socket, thread or entropy source: time comes in, chance comes from the Prng
// given. Bytes from peers never reach a RUMOR_CHECK; a malformed frame closes its link with a reason.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gossip/admission.h"
#include "gossip/copy_port.h"
#include "gossip/events.h"
#include "gossip/signing.h"
#include "gossip/update_store.h"
#include "runtime/base/limits.h"
#include "runtime/base/prng.h"
#include "runtime/base/time.h"

namespace rumor::gossip {

// How many links a node wants. With at most `high` other members: one to each.
struct LinkCounts {
  std::size_t low = limits::links_low;        // with fewer it asks full nodes for a place
  std::size_t target = limits::links_target;  // looks for more until then
  std::size_t high = limits::links_high;      // takes no more
  std::size_t dialled = limits::links_low;    // by itself, at least, as far as `high` allows
};

struct Options {
  NodeId self;
  StreamId stream;  // of this process
  RunId run;
  std::string run_name;                // for error texts only
  std::vector<std::string> advertise;  // host:port others may dial; empty when not listening
  std::vector<std::string> seeds;      // tried in parallel, retried for ever
  // Learned in earlier lives; tried like seeds, but given up after a while.
  std::vector<std::string> known_addresses;
  CodingRule coding = CodingRule::automatic;  // of the payloads we send
  std::shared_ptr<const Keys> keys = {};      // never null: of `self`
  AdmissionRule rule = {};                    // who may be linked; the owner in it is the run's
  Bytes admit = {};                           // an Admit to show, or nothing
  std::int64_t unix_start = 0;                // seconds since 1970 at TimePoint 0, for tokens' ends only
  LinkCounts links = {};
  // Where peers have models of their own (PROTOCOL.md 6.14): what is told to the neighbours only, in place of all
  // that spreads. Null: every update goes to every peer. Must outlive the protocol.
  CopyPort* copies = nullptr;
};

// Figures since start; bytes are of frames handed to and received from links.
struct Counters {
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  std::uint64_t sent_control_bytes = 0;  // everything but DATA and SNAP_DATA
  // Payloads sent: in the coding of the link they went over, and what their canonical form has.
  std::uint64_t sent_payload_bytes = 0, sent_canonical_bytes = 0;
  std::uint64_t updates_received = 0;    // DATA frames that carried something new
  std::uint64_t updates_duplicate = 0;   // DATA frames that did not
  std::uint64_t updates_invalid = 0;
  std::uint64_t snapshots_installed = 0;
  // Applied here and held by nobody any more when two histories met (PROTOCOL.md, "Orphans"). Goes down again
  // for those that a third peer gives back.
  std::uint64_t updates_lost = 0;
};

// One admitted link, for status pages.
struct PeerInfo {
  NodeId node;
  std::string address;
  bool dialled_by_us = false;
  std::uint64_t updates = 0;  // of its last digest
  bool digest_known = false;  // a digest of it has arrived
  bool digest_equal = false;  // its last digest equals ours now; with own models: that of its copy which we hold
  bool finished = false;      // it said that it trains no more
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  std::optional<Duration> round_trip;  // of the last ping answered
  Coding coding = Coding::canonical;   // of the next payload sent there, unless it is large
  Duration age{};                      // since the connection came up
};

// Whether others can dial us.
struct Reach {
  std::optional<TimePoint> asked_at;  // when neighbours were last asked to try
  std::optional<NodeId> by;           // who has dialled us last
  TimePoint at{};                     // and when
};

// A member may dial these later: kept in the state directory so that every seed may die.
struct KnownAddress {
  NodeId node;
  std::string address;
};

class Protocol {
 public:
  // `store` must outlive the protocol.
  Protocol(Options options, UpdateStore& store, Prng prng);
  ~Protocol();

  // ---- inputs; each appends to `out` ----
  void start(TimePoint now, Outbox& out);
  void on_link_up(const LinkUp& up, TimePoint now, Outbox& out);
  void on_frame(LinkId link, BytesView frame, TimePoint now, Outbox& out);
  void on_link_down(LinkId link, const std::string& reason, TimePoint now, Outbox& out);
  void on_dial_failed(const std::string& address, const std::string& reason, TimePoint now, Outbox& out);
  // The driver's queue of unsent bytes on a link crossed backlog_marks().high (true) or fell below .low (false).
  void on_backlog(LinkId link, bool full, TimePoint now, Outbox& out);
  void on_time(TimePoint now, Outbox& out);

  // The list has changed: links that it no longer admits are closed, and who has gone from `allowed` counts as
  // refused from now on. The owner stays as it was.
  void set_rule(AdmissionRule rule, TimePoint now, Outbox& out);
  // Where others may dial us from now on, in place of Options::advertise: told to all members.
  void set_addresses(std::vector<std::string> addresses, TimePoint now, Outbox& out);
  // For who wants to know: some neighbours try whether they can dial us, although we are linked. reach() shows it.
  void ask_to_be_dialled(TimePoint now, Outbox& out);
  // The owner's word, from this peer's own files or others. Errors: Errc::mismatch when it is not his; Errc::limit
  // when this replica can no longer take it back by itself (PROTOCOL.md 6.10); Errc::usage with models of their own.
  Result<void> revoke(const Revocation& revocation, TimePoint now, Outbox& out);

  // An own update, already accepted by the store. Spreads it. Requires: its stream is Options::stream.
  void publish(const StoredUpdate& update, TimePoint now, Outbox& out);
  // False: this origin is ahead of the network, and what it would publish had better wait in its residual.
  // Only advice: publish() may be called all the same.
  bool may_publish(TimePoint now) const;
  // We train no more (true) or again (false): told to all links, shown in PeerInfo.finished there.
  void set_finished(bool finished, TimePoint now, Outbox& out);
  // Says goodbye to every link and closes them. Nothing may be called afterwards but on_link_down.
  void leave(TimePoint now, Outbox& out);

  // When on_time() wants to be called next.
  TimePoint next_deadline() const;
  // The same from the beginning on.
  BacklogMarks backlog_marks() const;

  // ---- what the node asks ----
  // Every first contact has been tried and what the first peer had when we met it is ours: training may
  // start. Also true when no seed answered (alone is fine); waiting_for() then says what is being tried.
  bool ready_to_train() const;
  // Empty, or one line: "no peer has answered yet (tried 127.0.0.1:7001: connection refused); training
  // alone".
  std::string waiting_for() const;
  // Every seed that answered belongs to another run, and none to ours: one line naming both. Empty otherwise.
  std::string refused_by_run() const;
  // Two replicas with the same updates differ; names the peer. Empty otherwise.
  std::string divergence() const;
  // What our record shows of a token: with a member's confirmation once one has admitted us. Worth keeping.
  const Bytes& own_admit() const;
  // Admitted links exist and every one of them has finished and, but with models of their own, a digest equal to ours;
  // true when there are none.
  bool settled() const;

  std::vector<PeerInfo> peers() const;
  std::vector<KnownAddress> known_addresses() const;
  std::size_t members() const;       // in the table, ourselves included
  std::size_t members_here() const;  // those of them that have not said goodbye to us
  const Counters& counters() const;
  const Reach& reach() const;

  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rumor::gossip
