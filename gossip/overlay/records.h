// Records: passes the records of members on, until all nodes have the same table (PROTOCOL.md 5.1, 5.2).
//
// A new link gets the whole table; a record that changes here goes to all links, together with others that change
// within 100 ms. A link whose DIGEST names another table twice in a row gets the whole table again. The addresses in
// a record that changed may be dialled from then on: they go into the address book.
//
// Overlay owns it. The table itself is Core::members (gossip/links/members.h).
//
// Thread: one owner, as Protocol. Memory: the ids of nodes whose records changed within the last 100 ms.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include "gossip/links/address_book.h"
#include "gossip/links/core.h"
#include "gossip/overlay/duplicate_identities.h"

namespace rumor::gossip {

// Records' state about a link.
struct RecordsLink {
  std::uint32_t mismatches = 0;  // digests in a row that name another table than ours
  TimePoint table_sent_at;
};

class Records {
 public:
  static constexpr Duration batched = 100ms, table_interval = 10s;
  static constexpr std::size_t some_max = 16;
  static constexpr std::uint64_t record_units = 2;  // of control work: verifies a record and passes it on

  Records(Core& core, AddressBook& book, DuplicateIdentities& duplicates)
      : core_(core), book_(book), duplicates_(duplicates) {}

  // Takes a record from this link. False: the link is closed, since the record is forged or one too many.
  bool learn(Link& link, const PeerRecord& record);
  // Takes records until one closes the link.
  void learn_all(Link& link, const std::vector<PeerRecord>& records);
  // Sends our own record to all links soon, since it has changed.
  void own_changed() { spread(core_.members.self()); }
  // The same at the next tick().
  void own_renewed();

  // Sends the link the whole table.
  void send_table(Link& link);
  void on_digest(Link& link, const Digest& digest);
  // Up to some_max records at random, for a node that looks for other links than this one.
  std::vector<PeerRecord> some();

  // Sends what is due.
  void tick();
  // When changed records are to be sent; never: none have changed.
  TimePoint changes_due() const { return changes_at_; }
  // When Overlay has something to do because of records that came since the last tick(): to send them on, or to dial.
  TimePoint due() const { return due_; }

 private:
  void spread(const PeerRecord& record);
  void send_changes();

  Core& core_;
  AddressBook& book_;
  DuplicateIdentities& duplicates_;
  std::set<NodeId> changed_;
  TimePoint changes_at_ = never, due_ = never;
};

}  // namespace rumor::gossip
