// Pipeline: links and frames.
#include <algorithm>
#include <utility>

#include "gossip/pipeline/pipeline.h"
#include "runtime/base/check.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

// ---- links ----

void Pipeline::on_linked(LinkId link, PipelineOutbox& out) {
  strangers_.insert(link);
  out.push_back(Send{link, encode(options_.self), row_of<Stage>.lane});
}

void Pipeline::on_unlinked(LinkId link, TimePoint now, PipelineOutbox& out) {
  lose(link, out);
  go_on(now, out);
}

void Pipeline::close(LinkId link, std::string_view reason, PipelineOutbox& out) {
  out.push_back(Close{link, std::string(reason)});
  lose(link, out);
}

// Transfers that wait there go to others; those that came from there are dropped.
void Pipeline::lose(LinkId link, PipelineOutbox& out) {
  strangers_.erase(link);
  arriving_.erase(link);
  lowers_over_.erase(link);
  if (uppers_.has(link)) {
    for (const Slot slot : uppers_.remove(link)) {
      send_again(held_.at(slot), link);
      ++figures_.lost;
    }
  }
  if (!lowers_.has(link)) return;
  for (const Slot slot : lowers_.remove(link)) drop(held_.find(slot), out);
}

void Pipeline::send_again(Held& held, LinkId but) {
  RUMOR_CHECK(held.above && !held.replied);
  held.state = State::ready;
  held.to.reset();
  held.change.reset();
  held.shunned = but;
}

// ---- frames ----

void Pipeline::on_frame(LinkId link, const Frame& frame, TimePoint now, PipelineOutbox& out) {
  const bool is_stranger = strangers_.contains(link);
  if (!is_stranger && !uppers_.has(link) && !lowers_.has(link)) return;  // closed by us
  Complaint complaint;
  std::visit(
      [&](const auto& message) {
        using Message = std::decay_t<decltype(message)>;
        if constexpr (row_of<Message>.use != FrameUse::pipeline) {
          complaint = "a frame that has no place between stages";
        } else if constexpr (std::is_same_v<Message, Stage>) {
          complaint = on(link, message, out);
        } else {
          complaint = is_stranger ? "a frame before its stage" : on(link, message, now, out);
        }
      },
      frame);
  if (complaint) close(link, str("sent ", *complaint), out);
  go_on(now, out);
}

Pipeline::Complaint Pipeline::on(LinkId link, const Stage& stage, PipelineOutbox& out) {
  if (strangers_.erase(link) == 0) return "a second stage";
  const Stage& self = options_.self;
  const Stage expected{self.pipeline, stage.stage, self.stages, self.numbers};
  const bool is_upper = stage.stage == self.stage + 1, is_lower = stage.stage + 1 == self.stage;
  if (stage != expected || (!is_upper && !is_lower)) {
    strangers_.insert(link);
    return stage != expected ? "the stage of another pipeline" : "a stage that is no neighbour of ours";
  }
  if (is_upper) uppers_.add(link);
  if (is_upper && says_over_) out.push_back(Send{link, encode(Over{}), row_of<Over>.lane});
  if (is_lower) lowers_.add(link);
  return {};
}

Pipeline::Complaint Pipeline::on(LinkId link, const Credit& credit, TimePoint, PipelineOutbox&) {
  if (!uppers_.has(link)) return "a credit from below";
  return uppers_.take_credit(link, credit.limit);
}

Pipeline::Complaint Pipeline::on(LinkId link, const Activations& piece, TimePoint, PipelineOutbox& out) {
  if (!lowers_.has(link)) return "activations from above";
  Lowers::Taken taken = lowers_.take(link, piece);
  if (taken.arrived) hold(link, std::move(*taken.arrived), out);
  return taken.wrong;
}

Pipeline::Complaint Pipeline::on(LinkId link, const Gradients& piece, TimePoint now, PipelineOutbox&) {
  if (!uppers_.has(link)) return "gradients from below";
  const Uppers::Awaited* const awaited = uppers_.find(link, piece.transfer);
  if (awaited == nullptr) {  // given up, while it was on its way
    arriving_.erase(link);
    if (!uppers_.was_sent(link, piece.transfer)) return "an answer to no question";
    return {};
  }
  if (piece.begin) arriving_[link] = {piece.transfer, *piece.begin, {}};
  const auto at = arriving_.find(link);
  if (at == arriving_.end() || at->second.transfer != piece.transfer) return "a piece of no answer";
  Arriving& arriving = at->second;
  Held& held = held_.at(awaited->slot);
  if (arriving.begin.bytes != held.above->size() - held.label_bytes) return "an answer of a wrong length";
  arriving.bytes.insert(arriving.bytes.end(), piece.bytes.begin(), piece.bytes.end());
  if (arriving.bytes.size() > arriving.begin.bytes ||
      (arriving.bytes.size() < arriving.begin.bytes) != piece.more)
    return "pieces that do not fit their length";
  if (piece.more) return {};
  held.loss = arriving.begin.loss;
  held.change = std::make_shared<const Bytes>(std::move(arriving.bytes));
  held.state = State::answered;
  arriving_.erase(at);
  uppers_.answered(link, piece.transfer, now);
  return {};
}

Pipeline::Complaint Pipeline::on(LinkId link, const Outcome& outcome, TimePoint, PipelineOutbox& out) {
  if (uppers_.has(link)) return on_outcome_from_above(link, outcome, out);
  const std::optional<Slot> slot = lowers_.find(link, outcome.transfer);
  if (!slot) {  // it has ended here
    if (!lowers_.was_begun(link, outcome.transfer)) return "the outcome of nothing";
    return {};
  }
  if (outcome.kind == Outcome::Kind::refused) return "a refusal from below";
  const Place place = held_.find(*slot);
  if (outcome.kind == Outcome::Kind::dropped) {
    drop(place, out);
  } else if (!place->second.replied) {
    return "that it counted rows without an answer";
  } else {
    count(place, out);
  }
  return {};
}

Pipeline::Complaint Pipeline::on(LinkId link, const Over&, TimePoint, PipelineOutbox&) {
  if (!lowers_.has(link)) return "from above that no more micro-batches come";
  lowers_over_.insert(link);
  lower_was_over_ = true;
  return {};
}

// Refused: another neighbour may take them. Dropped: the neighbour has counted these rows before, and nobody
// is to count them again.
Pipeline::Complaint Pipeline::on_outcome_from_above(LinkId link, const Outcome& outcome,
                                                    PipelineOutbox& out) {
  if (outcome.kind == Outcome::Kind::counted) return "from above that rows count";
  const Uppers::Awaited* const awaited = uppers_.find(link, outcome.transfer);
  if (awaited == nullptr) {
    if (!uppers_.was_sent(link, outcome.transfer)) return "the outcome of nothing";
    return {};
  }
  const Place place = held_.find(awaited->slot);
  uppers_.forget(link, outcome.transfer);
  if (outcome.kind == Outcome::Kind::refused) {
    ++figures_.refused;
    send_again(place->second, link);
    return {};
  }
  const std::optional<Transfer> from = place->second.from;
  place->second.to.reset();
  drop(place, out);
  if (from) tell(*from, Outcome::Kind::dropped, out);
  return {};
}

}  // namespace rumor::gossip
