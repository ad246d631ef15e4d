// DuplicateIdentities: processes that run with the key of one node at the same time, as copies of a state directory or
// of a virtual machine do (PROTOCOL.md 5.12).
//
// A process has a stream of its own, which its HELLO names. Another process with our own key shows itself at a
// connection to our own node: of the two, the one that began later gives way. Two processes of another node show
// themselves when the earlier answers a PING after the later has greeted. A restart never does: the process before it
// is over by then.
//
// Overlay owns it. Thread: one owner, as Protocol. Memory: sessions_max streams of limits::members_max nodes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gossip/links/address_book.h"
#include "gossip/links/core.h"

namespace rumor::gossip {

class DuplicateIdentities {
 public:
  static constexpr Duration shown_for = 10min;  // also: between two lines about one node, and two dials of an address
  static constexpr std::size_t sessions_max = 4;

  DuplicateIdentities(Core& core, AddressBook& book) : core_(core), book_(book) {}

  // A process with our own key has greeted on this link. Closes the link: it is this process, or another.
  void on_own_key(Link& link, const Hello& hello);
  // A process of another node has greeted. Returns true when a later one of that node has greeted before it: an answer
  // to a PING from now on shows that both run.
  bool greeted(const Link& link, const Hello& hello);
  // The link, whose greeting() was true, has answered a PING.
  void answered(const Link& link);
  // The line that the process behind this admitted link is to hear, since answered() has shown that it ran beside
  // another with its key; empty: there is none, or it has heard of it within shown_for.
  std::string word_for(const Link& link);
  // A neighbour says goodbye to us because it has found two processes with our key. Its word is no proof.
  void on_word(const Link& link, const std::string& text);
  // Dials the addresses of a record of our own node that are not ours: a process that signs such records may be there.
  void look_up(const PeerRecord& record);

  // The newest trouble, for people, for shown_for; then empty.
  std::string trouble() const { return core_.now - trouble_at_ < shown_for ? trouble_ : std::string(); }

 private:
  struct Session {
    StreamId stream;
    std::string place;
    std::string word;  // that it is to hear
    TimePoint told_at = long_ago;
  };
  struct Processes {
    std::vector<Session> sessions;  // in the order of their first greetings; one that was shown to live goes to the end
    TimePoint said_at = long_ago;
  };
  void say(TimePoint& said_at, std::string text);

  Core& core_;
  AddressBook& book_;
  std::map<NodeId, Processes> nodes_;
  StreamId own_said_of_;  // the other process in the newest line about our own key
  TimePoint own_said_at_ = long_ago, word_said_at_ = long_ago;  // lines about our own key
  std::string trouble_;
  TimePoint trouble_at_ = long_ago;
};

}  // namespace rumor::gossip
