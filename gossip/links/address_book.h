// AddressBook: the addresses that may be dialled, when next, and the failures of each.
//
// Seeds and known addresses come from the options, the others from member records. An address that fails
// waits longer each time (PROTOCOL.md 5.6); seeds are never given up.
//
// Thread: one owner. Memory: seeds + known + 8 addresses per member.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/base/prng.h"
#include "runtime/base/time.h"
#include "runtime/base/types.h"

namespace rumor::gossip {

// The purpose of a dial, and of the link that comes of it.
enum class Purpose : std::uint8_t {
  link,
  feeler,     // to find another island (PROTOCOL.md 5.7)
  dial_back,  // to show its node that it can be dialled (5.11): the link ends at once
  errand,     // to fetch a trainer's state (6.16), beside the links that a node has otherwise
  duplicate,  // a record of our own node names it: is another process there? (5.12)
};

struct Address {
  bool seed = false, known = false;  // a first contact: tried at once at the start
  std::optional<NodeId> node;        // the node that answered there, once learned
  bool dialling = false;
  Purpose purpose = Purpose::link;  // of the newest dial
  bool tried = false;          // a first dial has come to an end, well or not
  bool ours = false;           // our own node answers there
  std::uint32_t failures = 0;  // in a row
  TimePoint next_try;
  TimePoint invited_at = long_ago;  // dialled because its node asked for it
  std::string trouble;    // of the last attempt
  std::string other_run;  // run name and id that answered there, if not ours
  std::string unlike;     // which parts of our run that run does not have
  std::string not_admitted;  // why the node there does not admit us

  bool first_contact() const { return seed || known; }
};

class AddressBook {
 public:
  static constexpr std::uint32_t known_failures_max = 20;
  // The node of higher id dials a member this much later: then two nodes rarely dial each other at once.
  static constexpr Duration higher_id_waits = 300ms;

  Address& at(const std::string& address) { return addresses_[address]; }
  Address* find(const std::string& address);
  std::map<std::string, Address>& all() { return addresses_; }
  const std::map<std::string, Address>& all() const { return addresses_; }

  void add_contact(const std::string& address, bool seed);
  // Adds a member's address, to be dialled from `first_try` on.
  void add_member(const std::string& address, const NodeId& node, TimePoint first_try);

  void failed(const std::string& address, std::string reason, TimePoint now, Prng& prng);
  // Sets the next try of all addresses of a node.
  void retry_node(const NodeId& node, TimePoint at);
  // An address that had failed answers again: others that wait long are tried within 10 s.
  void network_is_back(TimePoint now, Prng& prng);
  // Drops addresses that are neither a first contact nor in a record any more.
  template <class Keep>
  void keep_only(Keep keep) {
    std::erase_if(addresses_, [&](const auto& entry) {
      return !entry.second.dialling && !keep(entry.first, entry.second);
    });
  }

 private:
  std::map<std::string, Address> addresses_;
};

// `d`, times 50 to 150 %.
Duration jittered(Duration d, Prng& prng);
// 0.2 s * 2^(failures-1), at most 5 min, jittered. Requires: failures >= 1.
Duration redial_wait(std::uint32_t failures, Prng& prng);

}  // namespace rumor::gossip
