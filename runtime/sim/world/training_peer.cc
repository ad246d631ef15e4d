#include "runtime/sim/world/training_peer.h"

#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/text.h"
#include "runtime/sim/world/tag_keys.h"

namespace rumor::sim {

namespace {

Duration share_of(Duration whole, double share) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(whole.count()) * share));
}

}  // namespace

TrainingPeer::TrainingPeer(std::unique_ptr<Node> node, Duration step, std::uint64_t chance_seed,
                           Evaluate evaluate)
    : node_(std::move(node)),
      step_(step),
      costs_(Prng::named(chance_seed, "steps")),
      evaluate_(std::move(evaluate)) {}

void TrainingPeer::start(TimePoint now, gossip::Outbox& out) {
  NodeOutbox from;
  node_->start(now, from);
  replaced_ = !node_->replica().have().empty();  // out of a checkpoint, the log, or both
  forward(from, out);
}

void TrainingPeer::on_link_up(const gossip::LinkUp& up, TimePoint now, gossip::Outbox& out) {
  NodeOutbox from;
  node_->on_link_up(up, now, from);
  forward(from, out);
}

void TrainingPeer::on_frame(gossip::LinkId link, BytesView frame, TimePoint now, gossip::Outbox& out) {
  NodeOutbox from;
  node_->on_frame(link, frame, now, from);
  forward(from, out);
}

void TrainingPeer::on_link_down(gossip::LinkId link, const std::string& reason, TimePoint now,
                                gossip::Outbox& out) {
  NodeOutbox from;
  node_->on_link_down(link, reason, now, from);
  forward(from, out);
}

void TrainingPeer::on_dial_failed(const std::string& address, const std::string& reason, TimePoint now,
                                  gossip::Outbox& out) {
  NodeOutbox from;
  node_->on_dial_failed(address, reason, now, from);
  forward(from, out);
}

void TrainingPeer::on_backlog(gossip::LinkId link, bool full, TimePoint now, gossip::Outbox& out) {
  NodeOutbox from;
  node_->on_backlog(link, full, now, from);
  forward(from, out);
}

void TrainingPeer::on_time(TimePoint now, gossip::Outbox& out) {
  NodeOutbox from;
  node_->on_time(now, from);
  forward(from, out);
}

void TrainingPeer::on_computed(TimePoint now, gossip::Outbox& out) {
  NodeOutbox from;
  auto done = std::exchange(computing_, std::monostate{});
  if (const auto* evaluation = std::get_if<models::Evaluation>(&done))
    node_->on_evaluated(*evaluation, now, from);
  if (auto* step = std::get_if<StepResult>(&done)) {
    not_finite_ = not_finite_ || !step->failure.empty();
    node_->on_step_done(std::move(*step), now, from);
  }
  if (std::holds_alternative<Audited>(done)) node_->on_audited(now, from);
  if (auto* made = std::get_if<Result<gossip::Made>>(&done)) node_->on_made(std::move(*made), now, from);
  forward(from, out);
}

void TrainingPeer::set_finished(bool finished, TimePoint now, gossip::Outbox& out) {
  if (!finished) return;
  NodeOutbox from;
  node_->finish(now, from);
  forward(from, out);
}

Result<void> TrainingPeer::revoke(const gossip::Revocation& revocation, TimePoint now, gossip::Outbox& out) {
  NodeOutbox from;
  auto done = node_->revoke(revocation, now, from);
  forward(from, out);
  return done;
}

void TrainingPeer::leave(TimePoint now, gossip::Outbox& out) {
  NodeOutbox from;
  node_->stop(now, from);
  forward(from, out);
  if (computing_.index() != 0) on_computed(now, out);
}

bool TrainingPeer::log_in_bounds() const {
  return node_->log().bytes() <= node_->config().log_bytes || node_->log().size() <= 1;
}

std::string TrainingPeer::failure() const {
  if (!ended_ || *ended_ == 0) return {};
  return str("ended with status ", *ended_, ": ", last_note_);
}

void TrainingPeer::forward(NodeOutbox& from, gossip::Outbox& out) {
  const std::uint64_t snapshots = node_->protocol().counters().snapshots_installed;
  if (std::exchange(snapshots_, snapshots) != snapshots) replaced_ = true;
  for (NodeEffect& each : from) {
    std::visit(
        [&](auto& effect) {
          using E = std::decay_t<decltype(effect)>;
          if constexpr (std::is_same_v<E, StartStep>) {
            if (effect.collected) stage_.begin_step(*effect.collected);
            computing_ = node_->trainer().step(effect.plan);
            if (effect.collected) {
              compute_ = Duration{1};
              return;
            }
            const std::int64_t batches = node_->config().batches_in_turn(effect.plan.batches);
            const Duration step = share_of(step_ * batches * effect.plan.passes() / StepPlan::own_passes,
                                           node_->trainer().share_of_work(effect.plan.size));
            const std::int64_t tenth = step.count() / 10;
            compute_ = step + Duration(costs_.between(-tenth, tenth));
          } else if constexpr (std::is_same_v<E, StartEvaluation>) {
            computing_ = evaluate_(*node_, effect);
            compute_ = Duration{1};
          } else if constexpr (std::is_same_v<E, StartAudit>) {
            effect.audit->work();
            computing_ = Audited{};
            compute_ = step_ * node_->config().batches_in_turn(node_->config().batches());
          } else if constexpr (std::is_same_v<E, SaveCheckpoint>) {
            written_ = std::move(effect.bytes);
          } else if constexpr (std::is_same_v<E, Applied>) {
            applied_.push_back(effect.header);
          } else if constexpr (std::is_same_v<E, Published>) {
            sealed_.push_back(std::move(effect.update));
          } else if constexpr (std::is_same_v<E, gossip::Work>) {
            auto [made, cost] = stage_.make(effect);
            computing_ = std::move(made);
            compute_ = cost;
          } else if constexpr (std::is_same_v<E, Finished>) {
            ended_ = effect.status;
          } else {
            if constexpr (std::is_same_v<E, gossip::Note>)
              if (effect.level >= gossip::Note::Level::warning) last_note_ = effect.text;
            out.push_back(std::move(effect));
          }
        },
        each);
  }
}

NodeOptions node_options(const PeerStart& start, std::size_t nodes) {
  NodeOptions options;
  options.node = start.id;
  options.stream = start.stream;
  options.keys = std::make_shared<TagKeys>(start.id);
  for (const std::string& seed : start.seeds)
    if (seed != start.address) options.seeds.push_back(seed);
  options.advertise = {start.address};
  options.shard = {static_cast<std::uint32_t>(start.host % nodes), static_cast<std::uint32_t>(nodes)};
  options.chance_seed = start.chance_seed;
  Prng secret = Prng::named(start.chance_seed, "audits");
  for (std::uint8_t& byte : options.audit_secret.bytes) byte = static_cast<std::uint8_t>(secret.next());
  options.report_applied = true;
  return options;
}

}  // namespace rumor::sim
