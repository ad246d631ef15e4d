// Pipeline: one replica of a stage of a model that is cut (gossip/PIPELINE.md). It moves micro-batches up and
// their gradients down, and says when a step of its stage is complete.
//
// A function from (input, time) to effects, as Protocol is: no clock, no socket, no thread. A driver calls
// the handlers, carries out the effects in order, and calls on_time() at next_deadline(). Early and spare
// calls are harmless. Frames of peers never reach an assertion: what has no place closes the link that it
// came over.
//
// Thread: one owner. Memory: for each micro-batch that is not over, its input, its labels, and the gradient
// that came down; until its answer is there, its output as well. At most micro_batches take part in a step,
// as many are ahead of it, and `window` wait for each lower neighbour.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "gossip/pipeline/lowers.h"
#include "gossip/pipeline/uppers.h"
#include "gossip/pipeline/work.h"
#include "runtime/base/limits.h"
#include "runtime/base/prng.h"
#include "runtime/base/time.h"

namespace rumor::gossip {

struct PipelineOptions {
  Stage self;                       // what this replica says of itself
  StreamId stream;                  // names the micro-batches of a source
  std::uint32_t micro_batches = 1;  // of a step; >= 1
  bool overlap = false;             // begins the next step's micro-batches while those of a step are awaited
  // Transfers that each lower neighbour may have without an answer; >= 1. All stages above are busy only if there are
  // some two for each of them.
  std::uint64_t window = 4;
  // The most bytes of labels and border that a micro-batch has.
  std::uint64_t transfer_bytes_max = limits::border_bytes_max;
};

struct PipelineFigures {
  std::uint64_t steps = 0, counted = 0;  // steps made; micro-batches in them
  std::uint64_t dropped = 0;             // micro-batches that another replica counts
  std::uint64_t late = 0, lost = 0;      // transfers sent again: given up as late; because a link was lost
  std::uint64_t refused = 0;             // transfers that a neighbour without an upper neighbour sent back
  std::uint64_t repeats = 0;             // micro-batches that came again although they had been counted
  std::uint64_t sums_again = 0;          // sums that were begun again, without a dropped micro-batch
};

class Pipeline {
 public:
  // Requires: options are valid; two stages or more.
  Pipeline(PipelineOptions options, Prng prng);

  // ---- inputs ----

  // A link to a peer of another stage. The first effect is our STAGE.
  void on_linked(LinkId link, PipelineOutbox& out);
  // The link is gone. An unknown link is ignored: this side may have closed it.
  void on_unlinked(LinkId link, TimePoint now, PipelineOutbox& out);
  void on_frame(LinkId link, const Frame& frame, TimePoint now, PipelineOutbox& out);
  // The result of the Work that was asked for last.
  void on_made(Made made, TimePoint now, PipelineOutbox& out);
  // The bytes of that Work are not what a border has: it is not done, and the link that brought them is
  // closed.
  void on_unreadable(TimePoint now, PipelineOutbox& out);
  // The weights are there and stand still until the next MakeStep: at the start, and whenever a step is done.
  // Requires: no step has begun, or it was given up, or MakeStep was asked for since.
  void begin_step(TimePoint now, PipelineOutbox& out);
  // The step under way is in vain: no Work and no MakeStep come of it. What counted in it, or ahead of it, is lost to
  // this replica; the rest may take part in another step. Requires: waits_in_step().
  void give_up_step();
  // The source draws micro-batches from now on, or no more. Off at first.
  void set_emitting(bool emits, TimePoint now, PipelineOutbox& out);
  // Off: takes no more micro-batches, and sends back those that have no answer, as without an upper neighbour. On at
  // first.
  void set_serving(bool serves, TimePoint now, PipelineOutbox& out);
  // Sends no more micro-batches up, and says so to every upper neighbour, also to those that come later.
  void say_over(PipelineOutbox& out);
  void on_time(TimePoint now, PipelineOutbox& out);
  TimePoint next_deadline() const { return uppers_.next_deadline(); }

  // ---- questions ----

  bool is_source() const { return options_.self.stage == 1; }
  bool is_last() const { return options_.self.stage == options_.self.stages; }
  // A lower neighbour sends no more micro-batches, and no other that is linked does.
  bool is_over() const { return lower_was_over_ && lowers_over_.size() == lowers_.size(); }
  // A step has begun and is not complete, and nothing is being computed for it.
  bool waits_in_step() const { return in_step_ && !running_; }
  std::size_t uppers() const { return uppers_.size(); }
  std::size_t lowers() const { return lowers_.size(); }
  std::vector<Uppers::Figures> upper_figures() const { return uppers_.figures(); }
  // Whether a micro-batch is at an upper neighbour, or would be if one had credit.
  bool needs_answers() const { return uppers_.owe_answers() || has_ready(); }
  // Micro-batches here that wait for an upper neighbour, or for their turn.
  std::size_t waiting() const;
  const PipelineFigures& figures() const { return figures_; }
  // Micro-batches that are not over.
  std::size_t held() const { return held_.size(); }
  // Those of them that count in the step under way, or in the one that MakeStep was asked for: visit(Slot, name).
  template <class Visit>
  void each_counted(Visit visit) const {
    for (const auto& [slot, held] : held_)
      if (held.counted) visit(slot, held.name);
  }
  void check_invariants() const;

 private:
  // A transfer: on which link, under which number.
  struct Transfer {
    LinkId link{};
    std::uint64_t number = 0;
  };
  enum class State : std::uint8_t {
    waiting,   // for its turn in a step
    ready,     // `above` is there: wants an upper neighbour
    away,      // `to` has it
    answered,  // `change` is there, or this is the last stage
  };
  // The step that a micro-batch counts in, and the version of the weights that it is computed with (Narayanan et al.
  // 2021, "PipeDream-2BW"). Only in `ahead` is its sum that of the next step.
  enum class Version : std::uint8_t {
    current,  // the step under way, and its weights
    ahead,    // the next step, the weights of the one under way
    stashed,  // the step under way, the weights of the one before: it was ahead
  };
  struct Held {
    MicroBatchName name;
    std::uint32_t rows = 0;
    std::size_t label_bytes = 0;
    std::shared_ptr<const Bytes> below, above, change;  // above: until our own answer has gone down
    std::optional<Transfer> from, to;                   // to: once there is an answer, whose it is
    std::optional<LinkId> shunned;                      // did not answer: others come first
    State state = State::waiting;
    Version version = Version::current;
    bool replied = false;  // our own answer has gone down, or there is nobody below
    bool summed = false, counted = false;
    float loss = 0;
  };
  using Place = std::map<Slot, Held>::iterator;

  // Why a frame closes its link, or nothing.
  using Complaint = std::optional<std::string_view>;

  Complaint on(LinkId link, const Stage& stage, PipelineOutbox& out);
  Complaint on(LinkId link, const Credit& credit, TimePoint now, PipelineOutbox& out);
  Complaint on(LinkId link, const Activations& piece, TimePoint now, PipelineOutbox& out);
  Complaint on(LinkId link, const Gradients& piece, TimePoint now, PipelineOutbox& out);
  Complaint on(LinkId link, const Outcome& outcome, TimePoint now, PipelineOutbox& out);
  Complaint on(LinkId link, const Over& over, TimePoint now, PipelineOutbox& out);
  Complaint on_outcome_from_above(LinkId link, const Outcome& outcome, PipelineOutbox& out);

  void close(LinkId link, std::string_view reason, PipelineOutbox& out);
  void lose(LinkId link, PipelineOutbox& out);
  void send_again(Held& held, LinkId but);
  void tell(const Transfer& transfer, Outcome::Kind kind, PipelineOutbox& out) const;
  void hold(LinkId link, Lowers::Arrived arrived, PipelineOutbox& out);
  void drop(Place place, PipelineOutbox& out);
  void count(Place place, PipelineOutbox& out);
  bool is_counted(const MicroBatchName& name) const;
  void refuse_all(PipelineOutbox& out);
  bool is_open() const { return serves_ && (is_last() || !uppers_.empty()); }
  // The sum that the gradient of a micro-batch belongs to: 0 of the step under way, 1 of the next.
  static std::size_t sum_of(const Held& held) { return held.version == Version::ahead ? 1 : 0; }
  void empty_sum(std::size_t sum);
  void begin_sum_again(std::size_t sum);
  void reply(Held& held, Bytes bytes, PipelineOutbox& out);

  void go_on(TimePoint now, PipelineOutbox& out);
  void send_ready(TimePoint now, PipelineOutbox& out);
  void choose_work(PipelineOutbox& out);
  void ask_for(Work::Kind kind, Place place, PipelineOutbox& out);
  void end_step(PipelineOutbox& out);
  std::optional<Version> free_version() const;
  Place find_unsummed();
  std::size_t begun(bool ahead) const;
  bool has_ready() const;
  void fill_step();

  PipelineOptions options_;
  Prng prng_;
  std::set<LinkId> strangers_;  // links whose STAGE has not come
  Uppers uppers_;
  Lowers lowers_;
  // An answer of which pieces are missing.
  struct Arriving {
    std::uint64_t transfer = 0;
    GradientsBegin begin;
    Bytes bytes;
  };
  std::map<LinkId, Arriving> arriving_;
  std::map<Slot, Held> held_;
  Slot next_slot_ = 1;
  std::uint64_t emitted_ = 0;
  bool emits_ = false, in_step_ = false, serves_ = true;
  bool says_over_ = false, lower_was_over_ = false;
  std::set<LinkId> lowers_over_;  // of those linked
  // The work under way; its slot is not in held_ any more if it was dropped meanwhile.
  struct Running {
    Slot slot = 0;
    Work::Kind kind = Work::Kind::forward;
    std::size_t sum = 0;   // where its gradient goes
    bool is_void = false;  // its gradient went into a sum that is begun again
  };
  std::optional<Running> running_;
  std::array<std::size_t, 2> summed_{};       // micro-batches in the sums of this step and of the next
  std::set<MicroBatchName> counted_;          // of steps that are over
  std::deque<MicroBatchName> counted_order_;  // the same, oldest first
  PipelineFigures figures_;
};

}  // namespace rumor::gossip
