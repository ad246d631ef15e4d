// States: fetches the trainers' states that auditors ask for, and gives those that the auditor of this node keeps
// (PROTOCOL.md 6.16).
//
// Fetching: one state at a time, from the links that may hold it, one after another. The list of hashes is checked by
// the root, each piece by the list. Giving: the auditor is asked once for each state and link; its parts then come from
// the state that the link was granted.
//
// Thread: one owner, as Protocol. Memory: one state that is fetched; each link holds on to one that it was granted;
// waiting_max wishes.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gossip/contract/audit_port.h"
#include "gossip/links/core.h"
#include "gossip/overlay/overlay.h"

namespace rumor::gossip {

class States {
 public:
  static constexpr std::size_t waiting_max = 16;
  static constexpr std::uint32_t in_flight_max = 4;  // parts
  static constexpr std::uint32_t lost_links_max = 3;  // while one state is fetched; then the next holder is asked
  static constexpr Duration silent_max = 30s;
  static constexpr Duration look_again = 500ms;  // whether a holder that is dialled can be reached

  States(Core& core, Overlay& overlay) : core_(core), overlay_(overlay) {}

  // Ends in AuditPort::state_arrived() or state_failed(), also within the call. A state that is wanted again before it
  // has come ends so once, for both. Requires: there is an auditor.
  void want(WantedState wanted);
  void on_want(Link& link, const StateWant& want);
  void on_data(Link& link, const StateData& data);
  void admitted(Link& link);
  void link_lost(const Link& link);
  void tick();
  // A link has been granted a state and has not had all of it.
  bool gives() const;
  TimePoint due() const { return fetch_ ? due_ : never; }

 private:
  // The state of one link.
  struct OnLink {
    std::uint32_t owed = 0;  // parts that we have asked for, and that have not come
    std::shared_ptr<const KeptState> granted = {};  // to the other end; null: none
    UpdateKey update = {};                          // whose state that is
  };
  struct Fetch {
    WantedState wanted;
    std::size_t holder = 0;  // the next one to ask
    std::optional<LinkId> link = {};  // asked; nothing: it is being dialled
    std::uint32_t asked = 0, received = 0;  // parts
    std::uint32_t lost_links = 0;
    TimePoint given_up = never;  // the holder
    Bytes list = {}, bytes = {};
  };
  WantedState* wanted_already(const UpdateKey& update);  // null: it is not
  void begin_next();
  void ask_next_holder();
  bool holder_comes() const;
  void ask_holder(Link& link);
  void ask_parts(Link& link);
  bool take_part(const StateData& data);
  void fail(const std::string& why);

  Core& core_;
  Overlay& overlay_;
  std::map<LinkId, OnLink> links_;
  std::deque<WantedState> waiting_;
  std::optional<Fetch> fetch_;
  TimePoint due_ = never;  // when fetch_ is looked at again
};

}  // namespace rumor::gossip
