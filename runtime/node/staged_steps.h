// StagedSteps: own steps of a peer that serves a stage of a pipeline (gossip/PIPELINE.md). A step begins like any
// other; its Pipeline then collects the gradients of its micro-batches, which the driver computes (effect
// gossip::Work), and StartStep follows once they are there.
//
// The protocol hands over links to neighbouring stages and their frames (gossip::StageLinks). What the pipeline wants
// sent waits here until the protocol's turn is over: advance() passes it on.
//
// In a run that is no stage there is nothing to do, and is_on() is false.
//
// Thread: one owner, as Node. Memory: that of Pipeline.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "gossip/links/stage_links.h"
#include "gossip/pipeline/pipeline.h"
#include "runtime/node/node_core.h"

namespace rumor {

class StagedSteps final : public gossip::StageLinks {
 public:
  explicit StagedSteps(NodeCore& core);

  bool is_on() const { return pipeline_.has_value(); }
  bool is_source() const { return pipeline_ && pipeline_->is_source(); }

  void start(TimePoint now);
  // The step of this plan begins: the weights stand still from now on. Requires: is_on(), and no other step.
  void begin(StepPlan plan, TimePoint now);
  // The result of the last gossip::Work.
  void made(Result<gossip::Made> made, TimePoint now);
  // Does what the state asks for, and passes on what is to be sent and computed. `ends`: the node is about to end.
  void advance(Turn& turn, bool ends);
  // This peer trains no more: a source draws no micro-batches, and upper neighbours hear of it. Requires: is_on().
  void finish(Turn& turn);
  // Whether the step under way, if there is one, is in vain: `ends`, or no micro-batch comes any more, or none is
  // answered when the run is over. True once for each: the caller makes an empty step of it.
  bool give_up(bool ends, TimePoint now);
  TimePoint deadline() const;

  // No micro-batch comes from below any more. Requires: is_on(), not a source.
  bool is_over() const { return pipeline_->is_over(); }
  // For people: the neighbouring stage that a step waits for. Empty: none.
  std::string waiting_for(TimePoint now) const;
  StageStatus status(TimePoint now) const;
  // Null: the run is no stage.
  const gossip::Pipeline* pipeline() const { return pipeline_ ? &*pipeline_ : nullptr; }
  void check_invariants() const;

  // gossip::StageLinks
  void linked(gossip::LinkId link) override;
  void unlinked(gossip::LinkId link) override;
  void frame(gossip::LinkId link, const gossip::Frame& frame) override;

 private:
  enum class Waits : std::uint8_t { no, above, link, below };

  bool is_left_behind(TimePoint now) const;
  Waits waits() const;
  void note_wait(TimePoint now);
  std::vector<UpperStatus> upper_status() const;
  void pass_on(Turn& turn);
  void carry_out(gossip::Send& send, Turn& turn);
  void carry_out(gossip::Close& close, Turn& turn);
  void carry_out(gossip::Note& note, Turn& turn) { turn.out.push_back(std::move(note)); }
  void carry_out(gossip::Work& work, Turn& turn) { turn.out.push_back(std::move(work)); }
  void carry_out(gossip::MakeStep& step, Turn& turn);

  NodeCore& core_;
  std::optional<gossip::Pipeline> pipeline_;
  gossip::PipelineOutbox out_;
  TimePoint begun_{};             // when the last step began
  bool looked_ = false;           // whether it stands still, once it could
  std::optional<StepPlan> plan_;  // of the step whose micro-batches are collected
  bool serves_ = true;            // as the pipeline was told last
  Waits waits_ = Waits::no;       // since wait_since_
  TimePoint wait_since_{};
  std::array<Duration, 4> waited_{};  // by Waits, those that are over
};

}  // namespace rumor
