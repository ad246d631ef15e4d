// Pipeline: one micro-batch. pipeline_steps.cc has the work and the steps, pipeline_links.cc links and
// frames.
#include "gossip/pipeline/pipeline.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::gossip {

Pipeline::Pipeline(PipelineOptions options, Prng prng)
    : options_(std::move(options)), prng_(prng), lowers_(options_.window, options_.transfer_bytes_max) {
  RUMOR_CHECK(!options_.self.invalid());
  RUMOR_CHECK(options_.self.stages >= 2);
  RUMOR_CHECK(options_.micro_batches >= 1 && options_.window >= 1);
}

// ---- one micro-batch ----

void Pipeline::tell(const Transfer& transfer, Outcome::Kind kind, PipelineOutbox& out) const {
  if (!uppers_.has(transfer.link) && !lowers_.has(transfer.link)) return;
  out.push_back(Send{transfer.link, encode(Outcome{transfer.number, kind}), row_of<Outcome>.lane});
}

void Pipeline::hold(LinkId link, Lowers::Arrived arrived, PipelineOutbox& out) {
  const MicroBatchName name = arrived.begin.name;
  if (is_counted(name)) {
    ++figures_.repeats;
    lowers_.make_room(link);
    return tell({link, arrived.transfer}, Outcome::Kind::dropped, out);
  }
  Held held{.name = name, .rows = arrived.begin.rows, .label_bytes = arrived.begin.label_bytes};
  held.below = std::make_shared<const Bytes>(std::move(arrived.bytes));
  held.from = Transfer{link, arrived.transfer};
  lowers_.hold(link, arrived.transfer, next_slot_);
  held_.emplace(next_slot_++, std::move(held));
}

bool Pipeline::is_counted(const MicroBatchName& name) const {
  return counted_.contains(name) || std::any_of(held_.begin(), held_.end(), [&](const auto& one) {
           return one.second.name == name && one.second.counted;
         });
}

void Pipeline::empty_sum(std::size_t sum) {
  for (auto& [slot, held] : held_)
    if (sum_of(held) == sum) held.summed = false;
  summed_.at(sum) = 0;
}

// Puts the micro-batches of the sum into a new one; held_ has all that it takes.
void Pipeline::begin_sum_again(std::size_t sum) {
  empty_sum(sum);
  if (running_ && running_->sum == sum) running_->is_void = true;
  ++figures_.sums_again;
}

// The micro-batch is not this replica's to count. Below, the caller has ended it.
void Pipeline::drop(Place place, PipelineOutbox& out) {
  Held& held = place->second;
  RUMOR_CHECK(!held.counted);
  if (held.to) {
    if (held.state == State::away) uppers_.forget(held.to->link, held.to->number);
    tell(*held.to, Outcome::Kind::dropped, out);
  }
  if (held.from && lowers_.has(held.from->link)) {
    if (!held.replied) lowers_.make_room(held.from->link);
    lowers_.forget(held.from->link, held.from->number);
  }
  const bool is_running = running_ && running_->slot == place->first;
  const bool taints =
      is_running && (running_->kind == Work::Kind::backward || running_->kind == Work::Kind::both);
  const bool was_summed = held.summed;
  const std::size_t sum = sum_of(held);
  held_.erase(place);
  ++figures_.dropped;
  if (was_summed || taints) begin_sum_again(sum);
}

void Pipeline::count(Place place, PipelineOutbox& out) {
  Held& held = place->second;
  if (is_counted(held.name)) return drop(place, out);
  held.counted = true;
  if (held.from && lowers_.has(held.from->link)) lowers_.forget(held.from->link, held.from->number);
  if (held.to) tell(*held.to, Outcome::Kind::counted, out);
}

// Answers the lower neighbour with the gradient of the border.
void Pipeline::reply(Held& held, Bytes bytes, PipelineOutbox& out) {
  held.replied = true;
  held.above.reset();
  if (!held.from || !lowers_.has(held.from->link)) return;
  const LinkId link = held.from->link;
  const auto all = std::make_shared<const Bytes>(std::move(bytes));
  for (OutFrame& frame : encode_in_pieces(held.from->number, GradientsBegin{held.loss, all->size()}, all))
    out.push_back(Send{link, std::move(frame), row_of<Gradients>.lane});
  lowers_.make_room(link);
}

void Pipeline::check_invariants() const {
  std::array<std::size_t, 2> summed{};
  for (const auto& [slot, held] : held_) {
    summed.at(sum_of(held)) += held.summed;
    RUMOR_CHECK(options_.overlap || held.version == Version::current);
    RUMOR_CHECK(!held.summed || held.state == State::answered);
    RUMOR_CHECK(!held.counted || held.state == State::answered);
    RUMOR_CHECK((held.state == State::ready || held.state == State::away) <= (held.above != nullptr));
    if (held.state == State::away) {
      const Uppers::Awaited* awaited = uppers_.find(held.to->link, held.to->number);
      RUMOR_CHECK(awaited != nullptr && awaited->slot == slot);
    }
  }
  RUMOR_CHECK(summed == summed_);
  RUMOR_CHECK(begun(false) + begun(true) <= std::size_t{options_.micro_batches} * (options_.overlap ? 2 : 1));
  RUMOR_CHECK(counted_.size() == counted_order_.size());
}

}  // namespace rumor::gossip
