// Events of a StagedRun: nodes that begin steps, frames between stages, work that is done.
#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/mix64.h"
#include "runtime/base/text.h"
#include "runtime/sim/stages/staged_run.h"

namespace rumor::sim {

namespace {
constexpr Duration together = 1ms;  // how far clusters go on before they look at each other
}  // namespace

void StagedRun::advance() {
  TimePoint next = now_ + together;
  if (!queue_.empty()) next = std::min(next, std::max(queue_.next(), now_));
  for (const Peer& peer : peers_) next = std::min(next, std::max(peer.pipeline->next_deadline(), now_));
  for (const auto& cluster : clusters_) cluster->run_until(next);
  now_ = next;
  begin_steps();
  while (!queue_.empty() && queue_.next() <= now_) handle(queue_.pop().second);
  for (std::size_t i = 0; i < peers_.size(); ++i)
    if (peers_[i].pipeline->next_deadline() <= now_)
      call(i, [&](gossip::Pipeline& one, gossip::PipelineOutbox& out) { one.on_time(now_, out); });
}

void StagedRun::begin_steps() {
  for (const std::size_t i : std::exchange(beginning_, {})) {
    peers_[i].in_step = true;
    peers_[i].trainer.worker->begin_step();
    call(i, [&](gossip::Pipeline& one, gossip::PipelineOutbox& out) { one.begin_step(now_, out); });
  }
}

void StagedRun::handle(const Event& event) {
  if (event.worked) {
    gossip::Made made = std::move(peers_[*event.worked].made);
    return call(*event.worked, [&](gossip::Pipeline& one, gossip::PipelineOutbox& out) {
      one.on_made(std::move(made), now_, out);
    });
  }
  if (!fabric_.event(event.fabric, now_)) return;
  const std::optional<Arrival> arrival = fabric_.take(event.fabric);
  if (!arrival || arrival->closed) return;
  const HostId to = fabric_.host(arrival->at);
  trace_ = mix64(trace_ ^ static_cast<std::uint64_t>(now_.time_since_epoch().count()) ^
                 arrival->frame.size() << 40 ^ std::uint64_t{to} << 32);
  const auto frame = gossip::decode(arrival->frame);
  RUMOR_CHECK(frame.ok());
  call(to, [&](gossip::Pipeline& one, gossip::PipelineOutbox& out) {
    one.on_frame(ProtocolWorld::link_of(arrival->at), *frame, now_, out);
  });
}

void StagedRun::call(std::size_t i, const Input& input) {
  gossip::PipelineOutbox out;
  input(*peers_[i].pipeline, out);
  for (gossip::PipelineEffect& effect : out) std::visit([&](auto& one) { carry_out(i, one); }, effect);
}

void StagedRun::carry_out(std::size_t, gossip::Send& send) {
  Bytes frame = std::move(send.frame).joined();
  const auto type = static_cast<gossip::FrameType>(frame[0]);
  std::uint64_t& bytes = type == gossip::FrameType::activations ? result_.activation_bytes
                         : type == gossip::FrameType::gradients ? result_.gradient_bytes
                                                                : result_.control_bytes;
  bytes += frame.size();
  fabric_.send(ProtocolWorld::end_of(send.link), std::move(frame), send.lane == gossip::Lane::control, now_);
}

// Every peer of a simulation is honest, so nothing has a reason to close a link.
void StagedRun::carry_out(std::size_t i, gossip::Close& close) {
  refused_ = Error{Errc::io, str("node ", i, " closes a link between stages: ", close.reason,
                                 "; please report it with --sim-seed ", options_.seed)};
}

void StagedRun::carry_out(std::size_t, gossip::Note&) {}

void StagedRun::carry_out(std::size_t i, gossip::Work& work) {
  Peer& peer = peers_[i];
  const std::uint64_t before = peer.trainer.worker->forward_passes();
  auto made = peer.trainer.worker->make(work, peer.trainer_of_node->view().values);
  if (!made) {
    refused_ = Error{Errc::not_finite,
                     str("stage ", peer.stage + 1, " has numbers that are not finite: ", made.error().text)};
    return;
  }
  peer.made = std::move(*made);
  Duration cost = peer.forward * static_cast<std::int64_t>(peer.trainer.worker->forward_passes() - before);
  if (work.kind == gossip::Work::Kind::backward || work.kind == gossip::Work::Kind::both)
    cost += peer.backward;
  peer.computed += cost;
  queue_.push(now_ + cost, {{}, i});
}

void StagedRun::carry_out(std::size_t i, gossip::MakeStep& step) {
  Peer& peer = peers_[i];
  *peer.trainer.complete = step;
  peer.in_step = false;
  last_step_ = now_;
  clusters_[peer.stage]->end_step(peer.node, false);
}

}  // namespace rumor::sim
