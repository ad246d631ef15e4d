// Overlay: the nodes we know, and the links we keep (PROTOCOL.md section 5). Records passes on what we know of them.
//
// overlay.cc has greetings, and which links may stay; overlay_dial.cc what happens by the clock; overlay_invite.cc how
// others dial us; overlay_stages.cc links to other stages of a pipeline.
//
// Thread: one owner, as Protocol. Costs: tick() is O(links + addresses), at most once per 10 ms.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gossip/links/address_book.h"
#include "gossip/links/core.h"
#include "gossip/overlay/duplicate_identities.h"
#include "gossip/overlay/records.h"

namespace rumor::gossip {

// Overlay's state about a link (Link::overlay).
struct OverlayLink final : LinkState {
  bool greeted = false;             // we have sent HELLO
  bool was_admitted = false;        // at some time
  bool table_came = false;          // PEERS has come, with all members that it knows or the first of them
  bool goodbye = false;             // BYE came: no reason to redial at once
  bool returned = false;            // a later process of its node has greeted before it (duplicate_identities.h)
  Purpose purpose = Purpose::link;  // of our dial, or of theirs where that is an errand
  TimePoint errand_over_at = never;
  std::string other_run;            // that it greets for
  RecordsLink records;
  TimePoint invite_passed_at = long_ago;  // when we last passed one of its invitations on
  std::optional<std::uint64_t> ping;      // nonce of the one on its way, probes aside
  TimePoint ping_sent_at;
};

class Overlay {
 public:
  static constexpr Duration greeting_deadline = 5s, ping_interval = 5s, dead_after = 15s, stale_after = 7s;
  static constexpr Duration seed_interval = 10min, feeler_interval = 60s, feeler_age = 30s,
                            renew_interval = 24h, errand_max = 10min;
  static constexpr Duration invite_interval = 1s, invite_pass_interval = 500ms, invited_interval = 60s;
  static constexpr Duration short_lived = 10s;
  static constexpr Duration tables_cross = 2s;  // how long a peer of a stage that is no neighbour stays linked
  static constexpr std::size_t dials_max = 16, dial_backs_asked = 3, errands_taken = 2;

  explicit Overlay(Core& core) : core_(core) {}

  // Whether links at random are tried now and then, in search of better ones. Before start().
  void try_other_links(bool on) { tries_others_ = on; }
  void start();
  // Requires: Core has just added the link.
  void on_link_up(Link& link);
  void on_dial_failed(const std::string& address, const std::string& reason);
  // Returns true when this admits the link to the run's exchange.
  bool on_hello(Link& link, const Hello& hello);
  void on_reject(Link& link, const Reject& reject);
  void on_bye(Link& link, const Bye& bye);
  void on_ping(Link& link, const Ping& ping) { core_.send(link, encode(Pong{ping.nonce})); }
  void on_pong(Link& link, const Pong& pong);
  void ping(Link& link);
  // Whether a PING is on its way there, probes aside.
  bool awaits_pong(const Link& link) const { return own(link).ping.has_value(); }
  void on_peers(Link& link, const Peers& peers) {
    own(link).table_came = true;
    records_.learn_all(link, peers.records);
  }
  void on_invite(Link& link, const Invite& invite);
  // Sets where we can be dialled, and sends it to every link.
  void set_addresses(std::vector<std::string> addresses);
  // Asks some neighbours to try whether they can dial us; reach() shows the result.
  void ask_to_be_dialled();
  // Tries to link to a member for an errand. False: there is no address of it that could be dialled now.
  bool dial_member(const NodeId& node);
  // A dial of it has not ended, or it is linked and has perhaps not greeted.
  bool is_coming(const NodeId& node) const;
  // The errand on this link, if it is one, is done; another may follow soon.
  void errand_over(LinkId link);
  const Reach& reach() const { return reach_; }
  // Closes links that Core::rule does not admit, after it has changed.
  void judge_links();
  // Compares tables.
  void on_digest(Link& link, const Digest& digest) { records_.on_digest(link, digest); }
  void link_lost(const Link& link, const std::string& reason);
  void leave();
  void tick();
  TimePoint due() const { return std::min(due_, records_.due()); }

  // Every first contact has been tried in vain or lost, and no link is up or greeting.
  bool alone() const;
  // The first contacts and their trouble: "127.0.0.1:7001: connection refused, ...".
  std::string tried_text() const;
  std::string refused_by_run() const;
  bool has_contacts() const;
  // Whether a peer of our run has been linked at some time, and has admitted us.
  bool met_own_run() const { return met_own_run_; }
  const DuplicateIdentities& duplicate_identities() const { return duplicates_; }
  void check_invariants() const;

 private:
  static OverlayLink& own(Link& link) { return static_cast<OverlayLink&>(*link.overlay); }
  static const OverlayLink& own(const Link& link) { return static_cast<const OverlayLink&>(*link.overlay); }
  void wake() { due_ = core_.now; }
  void send_hello(Link& link);
  void bound_greetings();
  // Whether the link's node may take part, as its record shows; refuses and closes if not.
  bool admits(Link& link, PeerRecord& record);
  void refuse(Link& link, Reject::Code code, const std::string& text);
  bool keep_one_of_twins(Link& link, const StreamId& stream);
  bool make_room(Link& link, bool lonely);
  bool has_room_for_errand(const Link& link);
  void part(Link& link, const std::string& why);
  bool errand_has_ended(const Link& link) const;
  void admitted(Link& link, const Hello& hello);
  void tell_duplicate(Link& link);
  void watch_links();

  // Dialling (overlay_dial.cc).
  bool full_mesh() const { return core_.members_of_run() - 1 <= core_.options.links.high; }
  bool occupied(const NodeId& node) const;
  bool may_dial(const Address& entry) const;
  void dial(const std::string& address, Address& entry, Purpose purpose = Purpose::link);
  void dial_contacts();
  void dial_members();
  void dial_feeler();
  bool wants_links() const;
  bool unwelcome(const NodeId& node) const;
  std::size_t links_coming() const;
  std::size_t dialled_links() const;
  TimePoint next_dial() const;

  // Being dialled (overlay_invite.cc).
  void invite(const NodeId& member);
  bool follows_invitation(const Address& entry, const NodeId& node) const;
  void dial_inviter(const NodeId& node);
  void dial_back(const Link& link);

  // Links to other stages (overlay_stages.cc).
  bool is_of_other_stage(const Hello& hello) const;
  bool names_our_stage(const Hello& hello) const;
  bool make_room_beside(Link& link);
  void let_go(Link& link);
  std::size_t links_coming_to(std::uint32_t stage) const;
  bool wants_stage(std::uint32_t stage) const;
  void dial_stages();
  bool has_told_all(const NodeId& node) const;
  bool alone_in_stage() const;

  Core& core_;
  AddressBook book_;
  DuplicateIdentities duplicates_{core_, book_};
  Records records_{core_, book_, duplicates_};
  Reach reach_;
  TimePoint invited_at_ = long_ago;  // the last one of ours
  TimePoint due_{};  // without records_'s
  TimePoint feeler_at_ = never, renew_at_ = never;
  bool leaving_ = false;
  bool tries_others_ = true;
  bool met_own_run_ = false;
};

}  // namespace rumor::gossip
