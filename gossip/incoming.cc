// Protocol: links and frames.
#include "gossip/protocol_impl.h"
#include "runtime/base/mutant.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

// ---- links ----

void Protocol::on_link_up(const LinkUp& up, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  Link& link = impl_->core.add_link(up);
  link.exchange = impl_->exchange->new_link();
  impl_->overlay.on_link_up(link);
}

void Protocol::on_link_down(LinkId link, const std::string& reason, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  const auto at = impl_->core.links.find(link);
  if (at == impl_->core.links.end()) return;
  Link& lost = at->second;
  if (!lost.detached) {
    if (lost.state != Link::State::closing) lost.close_reason = reason;
    lost.state = Link::State::closing;
    impl_->detach(lost);
  }
  impl_->core.links.erase(at);
}

void Protocol::on_dial_failed(const std::string& address, const std::string& reason, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  impl_->overlay.on_dial_failed(address, reason);
}

void Protocol::on_backlog(LinkId link, bool full, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  Link* const known = impl_->core.find(link);
  if (known == nullptr) return;
  if (known->backlogged && !full) known->backlog_ended = impl_->core.now;
  known->backlogged = full || (mutant(18) && known->backlogged);
  impl_->exchange->on_backlog(*known);
}

// ---- frames ----

void Protocol::on_frame(LinkId link, BytesView frame, TimePoint now, Outbox& out) {
  Impl::Turn turn(*impl_, now, out);
  const auto at = impl_->core.links.find(link);
  if (at == impl_->core.links.end() || at->second.state == Link::State::closing) return;
  impl_->receive(at->second, frame);
}

void Protocol::Impl::receive(Link& link, BytesView bytes) {
  link.heard_at = core.now;
  link.received_bytes += bytes.size();
  core.counters.received_bytes += bytes.size();
  const bool greeting = link.state == Link::State::greeting;
  if (greeting && bytes.size() > limits::hello_bytes_max) return core.close(link, "too much before the greeting");
  const FrameRow row = frame_row(bytes.empty() ? 0 : bytes[0]);
  const bool beside = link.state == Link::State::beside;
  const bool counted_elsewhere = beside && row.use == FrameUse::pipeline;  // by credits
  const bool priced = !bytes.empty() && row.price == FramePrice::by_size && !counted_elsewhere;
  if (priced && !core.charge(link, 1 + bytes.size() / limits::control_unit_bytes)) return;
  const Result<Frame> frame = decode(bytes);
  if (!frame) return core.ban(link, str("sent a malformed frame: ", frame.error().text));
  const bool polite = std::holds_alternative<Hello>(*frame) || std::holds_alternative<Reject>(*frame) ||
                      std::holds_alternative<Bye>(*frame);
  if (greeting && !polite) return core.close(link, "another frame before the greeting");
  if (beside) return receive_beside(link, *frame, row, bytes[0]);
  if (row.use == FrameUse::pipeline) return;  // of another stage: this protocol is that of one
  const bool has_place =
      row.use == FrameUse::session || row.use == FrameUse::exchanges || row.use == exchange->frames();
  if (!has_place)
    return core.ban(link, str("sent a frame of type ", int{bytes[0]}, ", which has no place in this run's exchange"));
  dispatch(link, *frame);
}

// From a peer of another stage (PIPELINE.md 9).
void Protocol::Impl::receive_beside(Link& link, const Frame& frame, const FrameRow& row, int type) {
  if (row.use == FrameUse::session) return dispatch(link, frame);
  if (row.use != FrameUse::pipeline || !core.is_beside(link.stage))
    return core.ban(link, str("sent a frame of type ", type, ", which has no place between these stages"));
  core.options.stage_links->frame(link.id, frame);
}

void Protocol::Impl::dispatch(Link& link, const Frame& frame) {
  std::visit(
      [&](const auto& message) {
        using Message = std::decay_t<decltype(message)>;
        if constexpr (row_of<Message>.use == FrameUse::session) {
          on(link, message);
        } else {
          if constexpr (std::is_same_v<Message, Digest>) overlay.on_digest(link, message);
          exchange->on_frame(link, frame);
        }
      },
      frame);
}

void Protocol::Impl::on(Link& link, const Hello& hello) {
  if (link.has_member()) return core.close(link, "a second greeting");
  if (overlay.on_hello(link, hello)) exchange->on_admitted(link, hello);
}

void Protocol::Impl::on(Link& link, const Pong& message) {
  if (link.state == Link::State::beside || !exchange->on_pong(link, message)) overlay.on_pong(link, message);
}

}  // namespace rumor::gossip
