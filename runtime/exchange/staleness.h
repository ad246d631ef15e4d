// Staleness: how old the updates of others are when they arrive, and the rules by which an origin may limit the damage.
//
// The *staleness* of an update is the number of own periods that began between the period it was made in and its
// arrival: its origin could not know of these when it computed. It is measured for each peer. Only the origin acts on
// it: no receiver rescales, drops or delays an update. So the rules can be mixed, may differ from peer to peer, and
// leave replicas exact.
//
//   scale      the rate of a step is divided by max(1, staleness)^lambda, with the mean staleness of the live peers:
//              the staleness of our update at theirs is about the same. lambda = 1: Zhang, Gupta, Lian and Liu,
//              "Staleness-aware async-SGD for distributed deep learning", IJCAI 2016.
//   brake      when the mean staleness D is above a bound B the rate is multiplied by (2 B + 1) / (2 D + 1). On by
//              default: the in-flight view (in_flight_view.h) answers a delay of some steps, and well beyond that
//              training diverges whatever the view (figures in METHODS.md). Gradient steps of a quadratic that come D
//              late converge only for rates below 2 sin(pi / (4 D + 2)) over the curvature, so about in proportion to
//              1 / (2 D + 1) (Levin, May, "A note on difference-delay equations", Theoretical Population Biology
//              1976). The stronger of scale and brake counts.
//   soft-sync  a step waits until S updates of others have come since the last one began (n-softsync, same paper), or
//              as many as there are live peers where these are fewer.
//   ahead      a step waits while we are more than s updates ahead of the slowest live peer (stale synchronous
//              parallel: Ho et al., NIPS 2013). Clocks are numbers of updates; those of a pair of peers count from
//              the moment they first heard of each other. So this bounds how far peers drift apart, and the time that
//              links take stays on top of it.
//   bounded    a step waits while the newest update of a live peer lacks more than A of our updates. With A = 1 each
//              step has seen the last update of everyone, whatever links take: bulk synchronous. The clock is the
//              period of an update, which no peer sets lower than that of any update it has applied (Lamport 1978).
//
// No peer waits for one that is not live: a silent peer is dropped (runtime/exchange/live_peers.h). No two peers wait
// for each other: the slowest is ahead of none, the one that began its step first has heard all later updates, and of
// two last periods one is the lower at most. A peer that waits long on purpose, or sends old periods, holds up those
// that chose to wait; nobody else.
//
// Thread: one owner. Memory: some 100 bytes a live peer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/figures.h"
#include "runtime/base/types.h"
#include "runtime/run/method_rules.h"

namespace rumor {

struct PeerStaleness {
  NodeId node;
  StreamId stream;
  std::uint64_t updates = 0;  // heard of this stream
  double mean = 0;            // over some sixteen of them, the newest most
  std::uint64_t last = 0, max = 0;
};

inline constexpr FigureRow<PeerStaleness> staleness_rows[] = {
    figure<&PeerStaleness::node>("node_id").shown("peer", Form::id),
    figure<&PeerStaleness::stream>("stream"),
    figure<&PeerStaleness::updates>("updates").shown("updates", Form::count),
    figure<&PeerStaleness::mean>("mean").shown("mean", Form::decimal)
        .gauge("rumor_peer_staleness_updates", "Staleness of the last sixteen updates or so of each live peer."),
    figure<&PeerStaleness::last>("last").shown("last", Form::count),
    figure<&PeerStaleness::max>("max").shown("max", Form::count),
};

class Staleness {
 public:
  explicit Staleness(const StalenessRules& rules) : rules_(rules) {}

  // Update `key` of `peer`, made in `period`, has arrived. `own_period`: that of our last step; `own_updates`: how many
  // we have published. Returns its staleness.
  std::uint64_t heard(const NodeId& peer, const UpdateKey& key, std::uint64_t period, std::uint64_t own_period,
                      std::uint64_t own_updates);
  // The peer is no longer live.
  void gone(const NodeId& peer) { peers_.erase(peer); }
  void step_began() { heard_since_step_ = 0; }
  // Our own update of this period has left.
  void published(std::uint64_t period) { published_ = period; }

  // Over the live peers; 0 when there are none.
  double mean() const;
  // Multiplies the learning rate; in (0, 1].
  double rate_factor() const;
  // The brake's part in rate_factor().
  double brake() const;
  // Why the next step waits; empty: it does not.
  std::string waits_for(std::uint64_t own_updates) const;
  bool waits(std::uint64_t own_updates) const {
    return is_short() || slowest_behind(own_updates) != nullptr || oldest() != nullptr;
  }

  // The figures of the live peers, in NodeId order.
  std::vector<PeerStaleness> peers() const;

 private:
  struct Peer {
    PeerStaleness figures;
    std::uint64_t newest = 0;   // sequence number
    std::uint64_t period = 0;   // the latest
    std::int64_t ahead = 0;     // our number of updates less theirs, when we first heard of the stream
  };

  std::uint64_t wanted() const;
  bool is_short() const { return heard_since_step_ < wanted(); }
  std::int64_t lead(const Peer& peer, std::uint64_t own_updates) const;
  const Peer* slowest_behind(std::uint64_t own_updates) const;  // null: none too far
  const Peer* oldest() const;                                   // null: none too old

  StalenessRules rules_;
  std::map<NodeId, Peer> peers_;
  std::uint64_t heard_since_step_ = 0;
  std::uint64_t published_ = 0;  // period; 0: nothing yet
};

}  // namespace rumor
