// EventJournal: the events of a peer, for its page, `rumor status` and programs: joins, leaves, faults, phases,
// evaluations, and every line of the console.
//
// The newest 256 events are kept in memory for /events. With a file, each event is also written as one line of JSON:
//   {"at": 1789.25, "kind": "joined", "level": "info", "text": "peer 1a2b3c4d trains with us", "node_id": "1a2b..."}
// `at` is seconds since 1970. Levels: info, warning, error. Fields are only added. Kinds:
//
//   phase      of this peer
//   joined     another peer trains
//   left       it trains no more
//   lost       the same, and its link to us ended without a goodbye. A peer to which we had no link is "left"
//   behind     updates arrive late or are held back: the sentence on what limits training. Once in five minutes at most
//   evaluated  with samples, loss, accuracy; in the file alone
//   log        a console line
//   progress   to the listener alone
//
// Thread: the protocol thread.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/daemon/state/rotating_file.h"
#include "runtime/node/node_status.h"

namespace rumor::daemon {

enum class EventLevel : std::uint8_t { info, warning, error };

class EventJournal {
 public:
  // Writes to a file as well from now on. Errors: as RotatingFile::open.
  Result<void> open(const std::string& path);

  // Gets each event as it happens, as a line of JSON without its end.
  void listen(std::function<void(const std::string& line)> listener) { listener_ = std::move(listener); }
  // Tells only the listener, of progress.
  void pass(double unix_seconds, const std::string& text);

  // `unix_seconds`: now.
  void add(double unix_seconds, const std::string& kind, EventLevel level, const std::string& text);
  // Adds events for changes since the last status: phase, training peers, a new evaluation.
  void observe(double unix_seconds, const NodeStatus& status);

  // A list of the newest, oldest first.
  const std::string& json();
  // Why the file did not take the last event; empty: it did, or there is none.
  const std::string& trouble() const { return trouble_; }

 private:
  void tell_of_peers(double at, const NodeStatus& status);
  void tell_if_behind(double at, const Limit& limit);
  void keep(std::string line);
  // To the listener and the file.
  void write(const std::string& line);

  std::function<void(const std::string&)> listener_;
  std::deque<std::string> lines_;  // each one object, without a line end
  std::unique_ptr<RotatingFile> file_;
  std::string trouble_, phase_, json_;  // json_: empty when it must be made anew
  std::vector<NodeId> live_;            // in order
  std::uint64_t evaluations_ = 0;
  std::optional<double> behind_at_;  // the last event of this kind
};

}  // namespace rumor::daemon
