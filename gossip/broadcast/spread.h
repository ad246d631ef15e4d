// Spread: passes new updates on: announce, pull, subscribe, push (PROTOCOL.md 6.1).
//
// spread.cc has the way of an update through this node; spread_pull.cc what this node asks of its links; spread_give.cc
// what the links ask of it.
//
// Thread: one owner, as Protocol. Costs: an update costs O(links) and a few lookups, whatever the number of
// streams and updates; tick() costs O(links + what is due).
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "gossip/broadcast/state.h"

namespace rumor::gossip {

class Spread {
 public:
  static constexpr Duration announce_every = 20ms, reparent_after = 500ms, want_progress = 5s,
                            serve_again = 5ms;
  static constexpr std::uint8_t strike = 4, weak_strike = 1, strikes_max = 8;
  static constexpr std::size_t window_bytes = 512 << 10, window_min = 4, window_max = 64;
  // The balance of giving and taking: how often and over which time they are compared, and the tolerance.
  static constexpr Duration weigh_every = 500ms, weigh_over = 8s, declined_for = 30s;
  static constexpr std::uint64_t flow_bytes_min = 64, streams_beyond_fair = 3, declines_at_a_time = 64;
  static constexpr std::size_t announcements_max = 4096, to_serve_max = 1024;

  explicit Spread(BroadcastState& state)
      : core_(state.core),
        streams_(state.streams),
        missing_(state.missing),
        flow_(state.flow),
        pace_(state.pace) {}

  // Frames of an admitted link. Each closes the link when an honest peer would not have sent the frame.
  void on_have(Link& link, const Have& message);
  void on_want(Link& link, const Want& message);
  void on_subscribe(Link& link, const Subscribe& message);
  void on_decline(Link& link, const Decline& message);
  void on_data(Link& link, const Data& message);
  void on_data_more(Link& link, const DataMore& message);
  void on_not_available(Link& link, const NotAvailable& message);
  void on_backlog(Link& link);

  // An own update, in the store already.
  void publish(const StoredUpdate& update);
  // The link is no longer admitted: its unanswered WANTs go elsewhere.
  void link_lost(Link& link);

  // For range pulls: asks for a key that we lack unless it is asked for already. False when the window is
  // full.
  bool pull(Link& link, LocalKey key);
  // How many WANTs may be in flight on this link.
  std::size_t window(const Link& link) const;

  // Headers that came for names we hold, and differ from ours, since the last call.
  std::vector<UpdateHeader> take_suspects() { return std::exchange(suspects_, {}); }

  // At the end of every turn.
  void flush();
  void tick();
  TimePoint due() const { return due_; }
  void check_invariants() const;

 private:
  // Keys by wire index; consecutive ones become one range.
  struct RangeList {
    std::vector<WireRange> ranges;
    std::size_t keys = 0;

    void add(std::uint32_t stream, std::uint64_t seq);
  };
  struct Waiting {
    TimePoint at;
    LocalKey key;
  };

  void due_by(TimePoint at) { due_ = std::min(due_, at); }
  void spread(const StoredUpdate& update, StreamIndex stream, const Link* from);
  void push(Link& link, const StoredUpdate& update, StreamIndex stream);
  void on_whole(Link& link, const Data& message);
  void accept(Link& link, LocalKey key, const StoredUpdate& update);
  void suspect(const Data& message, const NodeId& origin, const Bytes& payload, const UpdateKey& key);
  Result<Accepted> verified(const StoredUpdate& update);
  void announce(Link& link, LocalKey key);
  void send_announcements(Link& link);

  // Giving (spread_give.cc).
  struct Push {
    Link* link;
    StreamIndex stream;
  };
  void serve(Link& link);
  void flows(Stream& stream, std::size_t payload_bytes);
  void weigh();
  void decline(const Push& push);

  // Pulling (spread_pull.cc).
  // Whether a link that has declined the stream may become its provider again, or others get the time to announce.
  enum class Decliners : std::uint8_t { provide, wait };
  void announced(Link& link, LocalKey key);
  void ask(Link& link, LocalKey key, Missing& entry);
  bool take_answer(Link& link, LocalKey key);
  void fill_window(Link& link);
  void subscribe(Link& link, StreamIndex stream);
  void unsubscribe(Link& link, StreamIndex stream);
  bool has_declined(Link& link, StreamIndex stream);
  Link* best_announcer(StreamIndex stream, const Missing& entry, const Link* except);
  Link* claimant(const UpdateKey& key, const Link* except);
  void ask_elsewhere(LocalKey key, const Link* except, Decliners decliners = Decliners::provide);
  void give_up_asked(Link& link);
  void watch_waiting();
  void reconsider(LocalKey key, Missing& entry);
  void reparent(StreamIndex stream, Link& next);
  void watch_wants();

  Core& core_;
  Streams& streams_;
  MissingKeys& missing_;
  UpdateFlow& flow_;
  OriginPace& pace_;
  std::vector<UpdateHeader> suspects_;
  std::deque<Waiting> waiting_;  // keys that a provider should push, by time
  TimePoint due_ = never;
  TimePoint weigh_at_ = never;
};

}  // namespace rumor::gossip
