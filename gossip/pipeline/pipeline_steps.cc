// Pipeline: what to send and to compute next, and when a step is complete.
#include <algorithm>
#include <utility>

#include "gossip/pipeline/pipeline.h"
#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

// ---- work ----

// Micro-batches that take part in the step under way, or are ahead of it.
std::size_t Pipeline::begun(bool ahead) const {
  return static_cast<std::size_t>(std::count_if(held_.begin(), held_.end(), [&](const auto& one) {
    const bool begun = one.second.state != State::waiting || (running_ && running_->slot == one.first);
    return begun && (one.second.version == Version::ahead) == ahead;
  }));
}

// The version of a micro-batch that begins now, if one may.
std::optional<Pipeline::Version> Pipeline::free_version() const {
  if (begun(false) < options_.micro_batches) return Version::current;
  if (!options_.overlap || begun(true) >= options_.micro_batches) return std::nullopt;
  // One here and one in each stage above keep all of them busy. More would wait there and have older weights.
  const auto away = std::count_if(held_.begin(), held_.end(),
                                  [](const auto& one) { return one.second.state == State::away; });
  if (away > static_cast<std::ptrdiff_t>(options_.self.stages - options_.self.stage)) return std::nullopt;
  return Version::ahead;
}

// A micro-batch is computed and waits for an upper neighbour. Others that begin now would only wait behind it, with
// their activations in memory and weights that get old.
bool Pipeline::has_ready() const {
  return std::any_of(held_.begin(), held_.end(),
                     [](const auto& one) { return one.second.state == State::ready; });
}

// A micro-batch of the step was dropped: the oldest that is ahead takes its place. It has this step's weights already.
void Pipeline::fill_step() {
  while (begun(false) < options_.micro_batches) {
    const Place next = std::find_if(held_.begin(), held_.end(), [&](const auto& one) {
      return one.second.version == Version::ahead && !(running_ && running_->slot == one.first);
    });
    if (next == held_.end()) return;
    if (next->second.summed) begin_sum_again(1);
    next->second.version = Version::current;
  }
}

void Pipeline::go_on(TimePoint now, PipelineOutbox& out) {
  if (!is_open()) refuse_all(out);
  send_ready(now, out);
  if (in_step_) fill_step();
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

// The oldest whose gradient is to be summed; those of the step under way come first.
Pipeline::Place Pipeline::find_unsummed() {
  Place found = held_.end();
  for (Place place = held_.begin(); place != held_.end(); ++place) {
    const Held& held = place->second;
    if (held.state != State::answered || held.summed) continue;
    if (held.version != Version::ahead) return place;
    if (found == held_.end()) found = place;
  }
  return found;
}

void Pipeline::choose_work(PipelineOutbox& out) {
  if (const Place place = find_unsummed(); place != held_.end())
    return ask_for(is_last() ? Work::Kind::both : Work::Kind::backward, place, out);
  const std::optional<Version> version = free_version();
  if (!version || has_ready()) return;
  const auto next = std::find_if(held_.begin(), held_.end(),
                                 [](const auto& one) { return one.second.state == State::waiting; });
  if (next != held_.end()) {
    next->second.version = *version;
    return ask_for(is_last() ? Work::Kind::both : Work::Kind::forward, next, out);
  }
  if (!is_source() || !emits_) return;
  Held held{.name = {options_.stream, ++emitted_}};
  held.version = *version;
  ask_for(Work::Kind::emit, held_.emplace(next_slot_++, std::move(held)).first, out);
}

void Pipeline::ask_for(Work::Kind kind, Place place, PipelineOutbox& out) {
  const Held& held = place->second;
  const std::size_t sum = sum_of(held);
  running_ = Running{place->first, kind, sum, false};
  Work work{kind, held.name, held.rows, held.label_bytes, held.below, held.change, summed_.at(sum) == 0};
  work.ahead = held.version == Version::ahead;
  work.stashed_weights = held.version == Version::stashed;
  out.push_back(std::move(work));
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
    ++summed_.at(done.sum);
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
    if (held.version == Version::ahead) {
      step.ahead.push_back(held.name);
      continue;
    }
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
    Held& held = place->second;
    if (!held.counted || held.version == Version::ahead) {
      if (held.version == Version::ahead) held.version = Version::stashed;
      ++place;
      continue;
    }
    ++figures_.counted;
    counted_.insert(place->second.name);
    counted_order_.push_back(place->second.name);
    place = held_.erase(place);
  }
  summed_ = {summed_[1], 0};
  while (counted_order_.size() > limits::counted_names_max) {
    counted_.erase(counted_order_.front());
    counted_order_.pop_front();
  }
  go_on(now, out);
}

void Pipeline::give_up_step() {
  RUMOR_CHECK(waits_in_step());
  in_step_ = false;
  for (const std::size_t sum : {0, 1}) empty_sum(sum);
  for (auto& [slot, held] : held_) held.version = Version::current;
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
