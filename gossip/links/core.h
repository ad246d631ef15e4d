// Core: what the session and every exchange share: options, links, members, scores, counters, and the time and the
// outbox of the turn under way.
//
// Thread: one owner, as Protocol.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gossip/contract/events.h"
#include "gossip/contract/update_store.h"
#include "gossip/links/address_book.h"
#include "gossip/links/figures.h"
#include "gossip/links/link.h"
#include "gossip/links/members.h"
#include "gossip/links/options.h"
#include "gossip/links/peer_scores.h"
#include "gossip/wire/wire.h"
#include "runtime/base/limits.h"
#include "runtime/base/prng.h"
#include "runtime/base/time.h"

namespace rumor::gossip {

// The addresses that a record may hold. Others would make every receiver take the record for malformed.
std::vector<std::string> fit_addresses(const NodeId& self, std::vector<std::string> addresses);

class Core {
 public:
  Core(Options options_in, UpdateStore& store_in, Prng prng_in);

  // Sets the time and the outbox of a turn. Effects need both.
  void begin(TimePoint time, Outbox& out);
  void end() { out_ = nullptr; }

  // ---- effects ----
  void send(Link& link, OutFrame frame);  // nothing on a closing link
  void send(Link& link, OutFrame frame, Lane lane);
  void close(Link& link, std::string reason);
  // Closes for what no honest peer does: the node is not linked again for an hour.
  void ban(Link& link, std::string reason);
  // Closes for what only costs us: the node is not linked again for ten minutes.
  void shun(Link& link, std::string reason);
  void dial(const std::string& address) { out_->push_back(Dial{address}); }
  void note(Note::Level level, std::string text) { out_->push_back(Note{level, std::move(text)}); }

  // ---- links ----
  // A new one, as the driver reports it. Requires: its id is new.
  Link& add_link(const LinkUp& up);
  Link* find(LinkId link);  // admitted links only
  Link* find(std::optional<LinkId> link) { return link ? find(*link) : nullptr; }
  Link* link_to(const NodeId& node);  // admitted, the oldest; null if none
  std::size_t admitted_count() const;
  // For every admitted link, in order of id.
  template <class Visit>
  void each_link(Visit visit) {
    for (auto& [id, link] : links) {
      if (link.admitted()) visit(link);
    }
  }
  // For every link to a member of the run or, in a pipeline, of any stage.
  template <class Visit>
  void each_member_link(Visit visit) {
    for (auto& [id, link] : links) {
      if (link.has_member()) visit(link);
    }
  }
  // Books control work for a link; false, and closed, when it asks for more than its share.
  bool charge(Link& link, std::uint64_t units);

  // ---- stages of a pipeline (PIPELINE.md 9) ----
  // What records and join tokens are signed for: the pipeline, or the run.
  RunId membership() const;
  // 0: the run is no stage of a pipeline.
  std::uint32_t own_stage() const { return options.stage ? options.stage->stage : 0; }
  bool is_beside(std::uint32_t stage) const { return stage + 1 == own_stage() || stage == own_stage() + 1; }
  bool is_of_run(const PeerRecord& record) const { return !options.stage || record.stage == options.stage->stage; }
  // The stage of a member, if that is another than ours; else 0.
  std::uint32_t other_stage(const std::optional<NodeId>& node) const;
  // Members of this run, ourselves included.
  std::size_t members_of_run() const;

  std::int64_t unix_now() const { return options.unix_start + (now.time_since_epoch() / Duration{1s}); }
  // Our digest at this moment.
  Digest digest(bool reply = false) const { return {store.digest(), members.hash(), finished, reply, buffers_hash}; }

  const Options options;  // texts and addresses made fit for frames
  AdmissionRule rule;     // as it is now
  UpdateStore& store;
  Prng prng;
  const Keys& keys;
  MemberTable members;
  PeerScores scores;
  Counters counters;
  std::map<LinkId, Link> links;
  TimePoint now{};
  bool finished = false;        // we train no more
  std::uint64_t buffers_hash = 0;  // of all BUFFERS held; 0 without any
  std::uint64_t published = 0;  // the newest own update
  std::string divergence;       // see Protocol::divergence()
  std::string superseded;         // see Protocol::superseded()

 private:
  Outbox* out_ = nullptr;
};

}  // namespace rumor::gossip
