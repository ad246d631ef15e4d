#include "runtime/node/staged_steps.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {
constexpr Duration stalled_after = 5s;  // a step that takes longer without anything to compute
}  // namespace

StagedSteps::StagedSteps(NodeCore& core) : core_(core) {
  if (!core.options.pipeline) return;
  gossip::PipelineOptions options = *core.options.pipeline;
  options.stream = core.options.stream;
  pipeline_.emplace(std::move(options), Prng::named(core.options.chance_seed, "pipeline"));
}

// ---- inputs ----

void StagedSteps::start(TimePoint now) {
  if (is_source()) pipeline_->set_emitting(true, now, out_);
}

void StagedSteps::linked(gossip::LinkId link) { pipeline_->on_linked(link, out_); }

void StagedSteps::unlinked(gossip::LinkId link) { pipeline_->on_unlinked(link, core_.turn->now, out_); }

void StagedSteps::frame(gossip::LinkId link, const gossip::Frame& frame) {
  pipeline_->on_frame(link, frame, core_.turn->now, out_);
}

void StagedSteps::begin(StepPlan plan, TimePoint now) {
  RUMOR_CHECK(pipeline_ && !plan_);
  plan_ = std::move(plan);
  begun_ = now;
  looked_ = false;
  pipeline_->begin_step(now, out_);
}

void StagedSteps::made(Result<gossip::Made> made, TimePoint now) {
  if (made)
    pipeline_->on_made(std::move(made).value(), now, out_);
  else
    pipeline_->on_unreadable(now, out_);
}

// ---- turns ----

// The cause why the step under way has nothing to compute.
StagedSteps::Waits StagedSteps::waits() const {
  if (!plan_ || !pipeline_->waits_in_step()) return Waits::no;
  if (!pipeline_->needs_answers()) return Waits::below;
  for (const gossip::Uppers::Figures& upper : pipeline_->upper_figures())
    if (const auto link = core_.protocol->stage_link(upper.link); link && link->is_full) return Waits::link;
  return Waits::above;
}

void StagedSteps::note_wait(TimePoint now) {
  const Waits waits = this->waits();
  if (waits == waits_) return;
  waited_[static_cast<std::size_t>(waits_)] += now - wait_since_;
  waits_ = waits;
  wait_since_ = now;
}

void StagedSteps::advance(Turn& turn, bool ends) {
  if (!pipeline_) return;
  if (core_.phase == Phase::ended) return out_.clear();
  if (pipeline_->next_deadline() <= turn.now) pipeline_->on_time(turn.now, out_);
  looked_ = looked_ || turn.now - begun_ >= stalled_after;
  const bool serves = core_.phase == Phase::training && !ends && !pipeline_->is_over();
  if (std::exchange(serves_, serves) != serves) pipeline_->set_serving(serves, turn.now, out_);
  pass_on(turn);
  note_wait(turn.now);
}

void StagedSteps::finish(Turn& turn) {
  if (is_source()) pipeline_->set_emitting(false, turn.now, out_);
  pipeline_->say_over(out_);
  pass_on(turn);
}

// Other sources have seen the rest of the run's samples, and nobody above answers this one: they may all be done.
bool StagedSteps::is_left_behind(TimePoint now) const {
  return is_source() && now - begun_ >= stalled_after && core_.exchange->samples() >= core_.samples_wanted();
}

TimePoint StagedSteps::deadline() const {
  if (!pipeline_) return never;
  const TimePoint look = is_source() && plan_ && !looked_ ? begun_ + stalled_after : never;
  return std::min(pipeline_->next_deadline(), look);
}

bool StagedSteps::give_up(bool ends, TimePoint now) {
  if (!plan_ || !pipeline_->waits_in_step()) return false;
  if (!ends && !pipeline_->is_over() && !is_left_behind(now)) return false;
  plan_.reset();
  pipeline_->give_up_step();
  return true;
}

// Sending may close a link, which the pipeline hears of at once.
void StagedSteps::pass_on(Turn& turn) {
  while (!out_.empty())
    for (gossip::PipelineEffect& effect : std::exchange(out_, {}))
      std::visit([&](auto& one) { carry_out(one, turn); }, effect);
}

void StagedSteps::carry_out(gossip::Send& send, Turn& turn) {
  core_.protocol->send_to_stage(send.link, std::move(send.frame), send.lane, turn.now, turn.network);
}

void StagedSteps::carry_out(gossip::Close& close, Turn& turn) {
  core_.protocol->ban_from_stage(close.link, close.reason, turn.now, turn.network);
}

void StagedSteps::carry_out(gossip::MakeStep& step, Turn& turn) {
  RUMOR_CHECK(plan_);
  turn.out.push_back(StartStep{*std::exchange(plan_, std::nullopt), step});
}

// ---- questions ----

std::string StagedSteps::waiting_for(TimePoint now) const {
  if (!pipeline_) return {};
  const std::uint32_t stage = core_.options.pipeline->self.stage;
  std::string missing;
  if (!pipeline_->is_source() && pipeline_->lowers() == 0) missing = str("stage ", stage - 1);
  if (!pipeline_->is_last() && pipeline_->uppers() == 0)
    missing += str(missing.empty() ? "" : " and ", "stage ", stage + 1);
  if (!missing.empty()) return str("no peer of ", missing, " is linked, and steps need one");
  if (!plan_ || !pipeline_->waits_in_step() || now - begun_ < stalled_after) return {};
  if (pipeline_->is_source() || pipeline_->waiting() > 0)
    return str("stage ", stage + 1, " has given no answer for ", static_cast<int>(to_seconds(now - begun_)), " s");
  return str("stage ", stage - 1, " has sent nothing for ", static_cast<int>(to_seconds(now - begun_)), " s");
}

std::vector<UpperStatus> StagedSteps::upper_status() const {
  std::vector<UpperStatus> uppers;
  for (const gossip::Uppers::Figures& upper : pipeline_->upper_figures())
    if (const auto link = core_.protocol->stage_link(upper.link)) {
      UpperStatus& one = uppers.emplace_back(UpperStatus{link->node.hex(), upper.answered, upper.awaited, {}, {}});
      if (upper.pace > Duration{0}) one.pace_ms = to_seconds(upper.pace) * 1e3;
      if (link->round_trip) one.round_trip_ms = to_seconds(*link->round_trip) * 1e3;
    }
  return uppers;
}

StageStatus StagedSteps::status(TimePoint now) const {
  if (!pipeline_) return {};
  const auto waited = [&](Waits which) {
    const Duration over = waited_[static_cast<std::size_t>(which)];
    return to_seconds(which == waits_ ? over + (now - wait_since_) : over);
  };
  const gossip::Stage& self = core_.options.pipeline->self;
  const gossip::PipelineFigures& figures = pipeline_->figures();
  return {.stage = self.stage,
          .stages = self.stages,
          .pipeline = self.pipeline.hex(),
          .below = pipeline_->lowers(),
          .above = pipeline_->uppers(),
          .waiting = pipeline_->waiting(),
          .counted = figures.counted,
          .sent_again = figures.late + figures.lost + figures.refused,
          .dropped = figures.dropped,
          .waited_above = waited(Waits::above),
          .waited_link = waited(Waits::link),
          .waited_below = waited(Waits::below),
          .uppers = upper_status()};
}

void StagedSteps::check_invariants() const {
  if (!pipeline_) return;
  pipeline_->check_invariants();
  RUMOR_CHECK(plan_ || !pipeline_->waits_in_step());
}

}  // namespace rumor
