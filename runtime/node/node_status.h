// NodeStatus: what one peer can say about itself at one moment. Rendered as /status, /metrics and in `rumor
// stats`.
//
// Thread: plain values; safe to hand to another thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gossip/protocol.h"
#include "runtime/exchange/staleness.h"
#include "runtime/training/memory_use.h"

namespace rumor {

// Kept by the node as it trains.
struct TrainingFigures {
  std::uint64_t steps = 0;
  std::uint64_t steps_held = 0;  // of these: without an update, since the peer was ahead of the network
  std::uint64_t own_updates() const { return steps - steps_held; }
  double train_loss = 0;                 // moving average over own batches
  std::optional<double> loss, accuracy;  // of the last evaluation, on the test set
  std::uint64_t evaluations = 0;
  std::uint64_t own_payload_bytes = 0;   // of all own updates
  std::uint64_t own_entries = 0;
  double own_bound_bits = 0;  // bits that independent positions and signs would need for them
  // Of the updates of others: how many periods (own updates, nearly) lay between making and applying one.
  std::uint64_t updates_of_others = 0, staleness_sum = 0, staleness_max = 0;
  double seconds_waited = 0;  // for others, by the rules against staleness
};

struct TensorStatus {
  std::string name;
  std::uint64_t params = 0, entries = 0;  // entries of the last own update
  double residual_rms = 0;
  double threshold = 0;  // its least magnitude sent, in weight units; 0 where nothing was
};

// What limits training: a word for programs (joining, alone, compute, pace, link, slow_peer, done), and a sentence
// for people.
struct Limit {
  std::string kind, text;
};
inline constexpr const char* limit_kinds[] = {"joining", "alone", "compute", "pace", "link", "slow_peer", "done"};

struct NodeStatus {
  std::string run_name, run_id, node_id, phase, waiting_for;
  std::string exchange = "broadcast";  // another: then digest and updates are of the peer's own public copy
  std::uint64_t params = 0;
  std::uint64_t samples = 0, samples_planned = 0;
  std::uint64_t updates = 0;
  std::string digest;          // hex
  bool digests_equal = false;  // PeerInfo::digest_equal of every link
  std::size_t live_peers = 0, members = 0;
  double rate = 0, threshold = 0, target_density = 0;
  double rate_factor = 1;  // what the rules against staleness make of the rate; counted in `rate`
  double residual_age = 0;  // what waits / what the last update took: updates until a change is sent (Little's law)
  std::size_t in_flight = 0;
  TrainingFigures training;
  std::vector<PeerStaleness> staleness;  // of the live peers
  std::vector<gossip::PeerInfo> peers;
  std::vector<TensorStatus> tensors;
  gossip::Counters traffic;
  struct Reached {
    std::string by;      // node that dialled this one last
    double seconds = 0;  // ago
  };
  std::optional<Reached> reached;
  std::optional<double> asked_to_be_dialled_seconds;  // ago, by neighbours
  std::uint64_t log_updates = 0, log_bytes = 0;
  std::uint64_t log_dropped = 0;  // although not all members had acknowledged them
  std::string log_trouble;        // why the disk did not take the last one; empty: it did
  MemoryUse memory;               // the trainer's as of its last step or evaluation
  // Set by the driver:
  std::string storage_trouble;  // why the last checkpoint could not be written; empty: it was
  std::string port_mapping;     // where others reach it by the router, or why not; empty: no router is asked
  double pause_ms = 0;          // the longest that training waited for the next step, in the last ten seconds

  Limit limit;                  // now (daemon/bottleneck.h)
  double compute_share = 0;     // of the last ten seconds, spent on steps and evaluations
  double uptime_seconds = 0, unix_seconds = 0;
  std::string version;  // of the program

  double density() const;
  double bits_per_entry() const;
  double bound_bits_per_entry() const;
  double staleness_mean() const;
  double bytes_per_parameter() const;
  std::uint64_t dense_bytes() const;  // of the own updates in fp32, sent once
  double ratio() const;               // dense_bytes() / the payload bytes of the own updates
};

// The /status object (ARCHITECTURE.md, "Contracts"), as JSON text.
std::string status_json(const NodeStatus& status);

}  // namespace rumor
