// Pipeline: what to send and to compute next, and when a step is complete.
#include <algorithm>
#include <utility>

#include "gossip/pipeline/pipeline.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

// ---- work ----

std::size_t Pipeline::taking_part() const {
  return static_cast<std::size_t>(std::count_if(held_.begin(), held_.end(), [&](const auto& one) {
    return one.second.state != State::waiting || (running_ && running_->slot == one.first);
  }));
}

bool Pipeline::has_ready() const {
  return std::any_of(held_.begin(), held_.end(), [](const auto& one) { return one.second.state == State::ready; });
}

void Pipeline::go_on(TimePoint now, PipelineOutbox& out) {
  if (!is_open()) refuse_all(out);
  send_ready(now, out);
  if (!running_ && in_step_) choose_work(out);
  if (!running_ && in_step_) end_step(out);
  for (const auto& [link, limit] : lowers_.take_credits(is_open()))
    out.push_back(Send{link, encode(Credit{limit}), row_of<Credit>.lane});
}

// Nobody is above: micro-batches without an answer go back to the lower neighbours, which may know a better
// one.
void Pipeline::refuse_all(PipelineOutbox& out) {
  if (is_source()) return;
  for (Place place = held_.begin(); place != held_.end();) {
    const Place next = std::next(place);
    if (place->second.state != State::answered) {
      const Transfer from = *place->second.from;
      drop(place, out);
      tell(from, Outcome::Kind::refused, out);
    }
    place = next;
  }
}

void Pipeline::send_ready(TimePoint now, PipelineOutbox& out) {
  for (auto& [slot, held] : held_) {
    if (held.state != State::ready) continue;
    const std::optional<LinkId> link = uppers_.choose(prng_, held.shunned, now);
    if (!link) return;
    held.to = Transfer{*link, uppers_.send(*link, slot, now)};
    held.state = State::away;
    const ActivationsBegin begin{held.name, held.rows, held.label_bytes, held.above->size()};
    for (OutFrame& frame : encode_in_pieces(held.to->number, begin, held.above))
      out.push_back(Send{*link, std::move(frame), row_of<Activations>.lane});
  }
}

void Pipeline::choose_work(PipelineOutbox& out) {
  const auto next_to_sum = std::find_if(held_.begin(), held_.end(), [](const auto& one) {
    return one.second.state == State::answered && !one.second.summed;
  });
  if (next_to_sum != held_.end())
    return ask_for(is_last() ? Work::Kind::both : Work::Kind::backward, next_to_sum, out);
  if (taking_part() >= options_.micro_batches) return;
  const auto next = std::find_if(held_.begin(), held_.end(),
                                 [](const auto& one) { return one.second.state == State::waiting; });
  if (next != held_.end()) return ask_for(is_last() ? Work::Kind::both : Work::Kind::forward, next, out);
  if (!is_source() || !emits_) return;
  const auto [place, is_new] = held_.emplace(next_slot_++, Held{.name = {options_.stream, ++emitted_}});
  ask_for(Work::Kind::emit, place, out);
}

void Pipeline::ask_for(Work::Kind kind, Place place, PipelineOutbox& out) {
  const Held& held = place->second;
  running_ = Running{place->first, kind, false};
  out.push_back(Work{kind, held.name, held.rows, held.label_bytes, held.below, held.change, summed_ == 0});
}

void Pipeline::on_made(Made made, TimePoint now, PipelineOutbox& out) {
  RUMOR_CHECK(running_);
  const Running done = *std::exchange(running_, std::nullopt);
  const Place place = held_.find(done.slot);
  if (place == held_.end()) return go_on(now, out);
  Held& held = place->second;
  if (done.kind == Work::Kind::emit || done.kind == Work::Kind::forward) {
    if (done.kind == Work::Kind::emit) {
      held.rows = made.rows;
      held.below = std::make_shared<const Bytes>(std::move(made.own));
    }
    held.label_bytes = made.label_bytes;
    held.above = std::make_shared<const Bytes>(std::move(made.bytes));
    held.state = State::ready;
    return go_on(now, out);
  }
  if (done.kind == Work::Kind::both) held.loss = made.loss;
  held.state = State::answered;
  if (!done.is_void) {
    held.summed = true;
    ++summed_;
  }
  if (!held.replied) {
    reply(held, std::move(made.bytes), out);
    if (is_source()) count(place, out);
  }
  go_on(now, out);
}

void Pipeline::on_unreadable(TimePoint now, PipelineOutbox& out) {
  RUMOR_CHECK(running_);
  const Running done = *std::exchange(running_, std::nullopt);
  const Place place = held_.find(done.slot);
  if (place == held_.end()) return go_on(now, out);
  Held& held = place->second;
  const bool from_above = done.kind == Work::Kind::backward;
  RUMOR_CHECK(!held.replied && (from_above ? held.to : held.from).has_value());
  const LinkId link = (from_above ? held.to : held.from)->link;
  if (from_above) send_again(held, link);
  close(link, "sent a border that cannot be read", out);
  go_on(now, out);
}

// ---- steps ----

void Pipeline::end_step(PipelineOutbox& out) {
  MakeStep step;
  double loss = 0;
  for (const auto& [slot, held] : held_) {
    if (!held.counted) continue;
    if (!held.summed) return;
    ++step.micro_batches;
    step.rows += held.rows;
    loss += static_cast<double>(held.loss);
  }
  if (step.micro_batches < options_.micro_batches) return;
  step.loss = static_cast<float>(loss / step.micro_batches);
  in_step_ = false;
  ++figures_.steps;
  out.push_back(step);
}

void Pipeline::begin_step(TimePoint now, PipelineOutbox& out) {
  RUMOR_CHECK(!in_step_ && !running_);
  in_step_ = true;
  for (Place place = held_.begin(); place != held_.end();) {
    if (!place->second.counted) {
      ++place;
      continue;
    }
    ++figures_.counted;
    counted_.insert(place->second.name);
    counted_order_.push_back(place->second.name);
    place = held_.erase(place);
  }
  while (counted_order_.size() > limits::counted_names_max) {
    counted_.erase(counted_order_.front());
    counted_order_.pop_front();
  }
  summed_ = 0;
  go_on(now, out);
}

void Pipeline::give_up_step() {
  RUMOR_CHECK(waits_in_step());
  in_step_ = false;
  empty_sum();
}

void Pipeline::set_emitting(bool emits, TimePoint now, PipelineOutbox& out) {
  RUMOR_CHECK(is_source());
  emits_ = emits;
  go_on(now, out);
}

void Pipeline::set_serving(bool serves, TimePoint now, PipelineOutbox& out) {
  serves_ = serves;
  go_on(now, out);
}

void Pipeline::say_over(PipelineOutbox& out) {
  if (std::exchange(says_over_, true)) return;
  uppers_.each([&](LinkId link) { out.push_back(Send{link, encode(Over{}), row_of<Over>.lane}); });
}

std::size_t Pipeline::waiting() const {
  return static_cast<std::size_t>(std::count_if(held_.begin(), held_.end(), [](const auto& one) {
    return one.second.state == State::waiting || one.second.state == State::ready;
  }));
}

void Pipeline::on_time(TimePoint now, PipelineOutbox& out) {
  for (const Uppers::Late& late : uppers_.take_late(now)) {
    Held& held = held_.at(late.slot);
    tell({late.link, late.transfer}, Outcome::Kind::dropped, out);
    send_again(held, late.link);
    ++figures_.late;
  }
  go_on(now, out);
}

}  // namespace rumor::gossip
