// Audits: what a node does about audits (runtime/AUDIT.md, "Segments"). It draws segments of other peers and makes
// them again, checks the proofs of others, makes its own segment again when it is charged, and gives states.
//
// One audit is under way at a time. It waits for a state, then goes on in slices, each an effect StartAudit, one after
// each own step at most. A coin at each own step says whether to draw a segment, so that an origin that has just been
// audited knows nothing of what comes. In the mean drawn segments take the share of compute that the run file gives.
// Checks of proofs go first, beside that share.
//
// A node that ends with the run first makes last segments of others again, and gives the states of its own to those who
// do (last_segments.cc).
//
// The port's calls come within a handler of the protocol, so they only note; advance() acts at the end of a turn.
//
// Thread: one owner, as Node. Memory: one SegmentAudit while a state is there, evidence_max states as evidence, at the
// end limits::state_bytes_max of states, and 20 bytes an asker.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gossip/contract/audit_port.h"
#include "runtime/audit/draws.h"
#include "runtime/base/prng.h"
#include "runtime/node/incoming.h"
#include "runtime/node/node_core.h"
#include "runtime/node/outgoing.h"
#include "runtime/node/state_shares.h"
#include "runtime/node/withheld_states.h"

namespace rumor {

// Segments of one peer that this one has made again, by outcome.
struct AuditCounts {
  std::uint64_t agreed = 0, differ = 0, cannot_tell = 0;
  std::string untold_why = {};  // of the last that could not be told

  void add(const audit::Finding& finding) {
    agreed += finding.verdict == audit::Verdict::agrees ? 1 : 0;
    differ += finding.verdict == audit::Verdict::differs ? 1 : 0;
    if (finding.verdict != audit::Verdict::cannot_tell) return;
    ++cannot_tell;
    untold_why = finding.why;
  }
};

class Audits final : public gossip::AuditPort {
 public:
  static constexpr std::size_t checks_max = 64, accusations_max = 16, evidence_max = 2;
  // The time in which the origin may find that its own memory erred: so many times what the audit took here, but no
  // less than the least.
  static constexpr int patience = 20;
  static constexpr Duration patience_min = 10s;
  // A state that takes longer to come may come too late.
  static constexpr Duration slow_state = 10s;
  // How long a node stays after the end of the run for those who may ask for its states: after the last that it gave,
  // and at most.
  static constexpr Duration stay = 3s, stay_max = 60s;
  static constexpr std::size_t last_max = 8;  // segments whose states are asked for at the end of the run

  Audits(NodeCore& core, Incoming& incoming, Outgoing& outgoing);

  // Empty, or why audit.share does nothing here.
  std::string idle_reason() const;

  // gossip::AuditPort
  std::shared_ptr<const gossip::KeptState> state(const UpdateKey& update, const NodeId& asker) override;
  void state_arrived(const UpdateKey& update, Bytes state) override;
  void state_failed(const UpdateKey& update, const std::string& why) override;
  void check(const gossip::Revocation& proof, const NodeId& holder) override;
  void charged(const UpdateKey& update) override;

  // The replica has taken an update of another peer.
  void on_update(const gossip::UpdateHeader& header);
  // An own step has taken so long.
  void trained(Duration time);
  // No more updates will come.
  void run_is_over(Turn& turn);
  // Whether a node that ends with the run may end now.
  bool may_end(TimePoint now) const;
  // Says what came out of it.
  void tell_last(Turn& turn) const;
  // For people: what a node that ends with the run does before; empty: it has not come to its end.
  std::string waiting_for() const;
  // Goes on with the audit under way, or begins one, as far as that needs no compute.
  void advance(Turn& turn);
  // Emits StartAudit when a slice is due. Requires: the trainer is idle. True: it did.
  bool begin_slice(Turn& turn);
  // The slice took so long.
  void slice_done(Duration time);
  // When advance() has something to do although nothing has arrived.
  TimePoint deadline() const;

  const std::map<NodeId, AuditCounts>& counts() const { return counts_; }
  std::uint32_t withheld_in_a_row(const NodeId& peer) const { return withheld_.in_a_row(peer); }
  // For people: which peer withholds its states; empty: none does.
  std::string withheld_trouble() const;

 private:
  enum class Purpose : std::uint8_t { drawn, proof, charge };
  struct Job {
    Purpose purpose;
    std::deque<audit::Segment> segments;  // to make again, one after another, until one differs
    UpdateKey accused = {};               // of a proof or a charge
    gossip::Revocation proof = {};
    NodeId holder = {};                   // who should have the state, beside the origin
    bool untold = false;                  // one of the segments before could not be told
    bool asked = false;                   // for a state
    bool owed = false;                    // its origin was asked for the state, and owes one
    bool refused = false;                 // a state that it did not owe has not come
    bool slow = false;                    // the state took longer than slow_state
    TimePoint asked_at = {};
    std::optional<std::string> no_state = {};  // why there is none
    std::optional<std::string> damaged = {};   // why its first record cannot be
    std::uint64_t asked_bytes = 0;
    std::optional<Bytes> state = {};           // to begin the front segment with; empty: that of a new trainer
    std::unique_ptr<audit::SegmentAudit> audit = {};
    Duration took = {};  // all slices
  };
  std::optional<Job> next_job();
  std::deque<audit::Segment> segments_around(const UpdateKey& update, const NodeId& origin) const;
  using Outcome = audit::SegmentAudit::Outcome;
  bool may_draw() const;
  // It does not train, any more or at all, so there is nothing else to do.
  bool has_time() const;
  // The front segment of the job: finds out where its state is.
  void begin(Job& job, Turn& turn);
  void find_state(Job& job, const audit::StepRecord& first, Turn& turn);
  // Those that wait for this state: a last segment may be one that is being made again already.
  std::vector<Job*> waiting_jobs(const UpdateKey& update);
  // Concludes segments that cannot be begun, until one can or waits for its state.
  void skip_impossible(Turn& turn);
  std::optional<Job> next_last();
  bool is_linked(const NodeId& node) const;
  bool is_busy() const;  // with anything at all
  std::vector<NodeId> holders_of(const Job& job) const;
  void start();
  void finish_segment(const Outcome& outcome, Turn& turn);
  void conclude(const Outcome& outcome, Turn& turn);
  void conclude_drawn(const Outcome& outcome, Turn& turn);
  std::string withheld_trouble_of(const NodeId& peer) const;
  void judge_state(const Outcome& outcome, Turn& turn);
  void conclude_proof(const Outcome& outcome, Turn& turn);
  void conclude_charge(const Outcome& outcome, Turn& turn);
  void keep_evidence();
  void carry_out_accusations(Turn& turn);
  std::shared_ptr<const gossip::KeptState> held_state(const UpdateKey& update) const;

  NodeCore& core_;
  Incoming& incoming_;
  Outgoing& outgoing_;
  std::uint64_t segment_;                  // updates of each; 0: there are none
  std::optional<audit::AuditTask> task_;   // absent: this peer cannot make steps again
  audit::Draws draws_;
  StateShares shares_;
  std::uint64_t charge_gap_;  // own updates between two segments that are made again for charges
  WithheldStates withheld_;
  double step_seconds_ = 0, audit_steps_;  // of an own step; own steps that take as long as an audit; in the mean
  Prng coins_;                             // nobody else's
  std::uint32_t owed_ = 0;                 // segments to draw
  bool has_trained_ = true;                // since the last slice
  std::optional<Job> job_;
  std::deque<Job> checks_;                 // of proofs and charges, which wait
  std::deque<Job> last_;                   // of last segments, at the end of the run
  TimePoint over_ = never;                 // when the run was over, of a node that ends with it
  TimePoint stays_until_ = never;          // for askers
  double trained_seconds_ = 0;             // all own steps
  Duration last_took_ = {};                // audits of last segments
  AuditCounts last_counts_;                // the same
  std::uint64_t charged_ = 0;              // the last own segment that was made again, by its first update
  std::map<UpdateKey, std::pair<TimePoint, gossip::Revocation>> accusations_;  // at their times
  std::deque<std::pair<UpdateKey, std::shared_ptr<const gossip::KeptState>>> evidence_;
  std::map<NodeId, AuditCounts> counts_;
};

}  // namespace rumor
