// The virtual world: events, and what nodes ask for. Measuring and concluding are in cluster_run.cc.
#include "runtime/sim/cluster/cluster.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/limits.h"
#include "runtime/base/sha256.h"
#include "runtime/base/text.h"
#include "runtime/sim/world/tag_keys.h"

namespace rumor::sim {

namespace {

Hash256 named_hash(std::uint64_t seed, std::string_view what, std::uint64_t a, std::uint64_t b) {
  ByteWriter out;
  out.text(what);
  for (std::uint64_t word : {seed, a, b}) out.u64(word);
  return sha256(out.bytes());
}

}  // namespace

Cluster::Cluster(const RunConfig& config, std::shared_ptr<const models::DataSet> data, ClusterOptions options)
    : config_(config),
      data_(std::move(data)),
      options_(std::move(options)),
      network_(options_.network, options_.nodes, options_.seed),
      chance_(Prng::named(options_.seed, "cluster")),
      step_costs_(Prng::named(options_.seed, "steps")),
      faults_(Prng::named(options_.seed, "faults")),
      nodes_(options_.nodes),
      group_(options_.nodes, 0) {}

Result<std::unique_ptr<Cluster>> Cluster::create(const RunConfig& config,
                                                 std::shared_ptr<const models::DataSet> data,
                                                 ClusterOptions options) {
  std::unique_ptr<Cluster> cluster(new Cluster(config, std::move(data), std::move(options)));
  for (std::size_t i = 0; i < cluster->nodes_.size(); ++i) {
    if (auto started = cluster->start_node(i); !started) return started.error();
  }
  const Node& first = *cluster->nodes_.front().node;
  cluster->record_.emplace(cluster->config_, cluster->data_, first.form().layout, first.replica().weights(),
                           cluster->nodes_.size(), cluster->options_.curve_points);
  if (cluster->options_.light_faults) cluster->queue_.push(TimePoint{500ms}, Fault{});
  for (std::size_t i = 0; i < cluster->options_.planned_faults.size(); ++i)
    cluster->queue_.push(TimePoint{cluster->options_.planned_faults[i].at}, Planned{i});
  return cluster;
}

NodeId Cluster::node_id(std::size_t i) const {
  return NodeId::from(named_hash(options_.seed, "node", i, 0).view());
}

std::string Cluster::address_of(std::size_t i) {
  return str("node-", i, ":7000");
}

Result<std::unique_ptr<Node>> Cluster::create_node(std::size_t i, NodeOptions options) {
  if (!options_.trainer) return Node::create(config_, data_, std::move(options));
  auto trainer = options_.trainer(i, options);
  if (!trainer) return trainer.error();
  return Node::create(config_, std::move(trainer).value(), std::move(options));
}

Result<void> Cluster::start_node(std::size_t i) {
  Slot& slot = nodes_[i];
  ++slot.life;
  slot.ended.reset();
  NodeOptions node;
  node.node = node_id(i);
  const Hash256 chance = named_hash(options_.seed, "stream", i, slot.life);
  node.stream = gossip::stream_of(node.node, ByteReader(chance.view()).u64());
  node.keys = std::make_shared<TagKeys>(node.node);
  for (std::size_t seed = 0; seed < std::min<std::size_t>(3, nodes_.size()); ++seed)
    if (seed != i) node.seeds.push_back(address_of(seed));
  node.advertise = {address_of(i)};
  node.shard = {static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(nodes_.size())};
  node.start = options_.start;
  node.chance_seed = mix64(options_.seed ^ mix64(i * 1000 + slot.life));
  node.evaluation_every = Duration{0};
  node.report_applied = true;
  auto made = create_node(i, std::move(node));
  if (!made) return made.error();
  slot.node = std::move(made).value();
  // Processes do not start at the same instant; a Wake starts the node.
  slot.wake_at = now_ + Duration(chance_.between(0, 20'000));
  queue_.push(slot.wake_at, Wake{i, slot.life});
  return {};
}

// ---- events ----

void Cluster::trace(std::uint64_t kind, std::uint64_t a, std::uint64_t b, BytesView bytes) {
  std::uint64_t h = mix64(trace_ ^ static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  h = mix64(h ^ kind ^ (a << 8) ^ (b << 40));
  ByteReader in(bytes);
  while (in.remaining() >= 8) h = mix64(h ^ in.u64());
  while (in.remaining() > 0) h = mix64(h ^ in.u8());
  trace_ = h;
}

bool Cluster::run_until(TimePoint until) {
  while (!queue_.empty() && queue_.next() <= until) {
    auto [at, event] = queue_.pop();
    now_ = at;
    handle(event);
  }
  if (until != never) now_ = std::max(now_, until);
  return !queue_.empty();
}

void Cluster::handle(Event& event) {
  std::visit([this](auto& e) { on(e); }, event);
}

void Cluster::on(FrameReaches& e) {
  const TimePoint at = network_.arrives(links_[e.link].end[e.side], e.frame.size() + framing_bytes, now_);
  queue_.push(at, FrameArrives{e.link, e.side, std::move(e.frame)});
}

void Cluster::on(FrameArrives& e) {
  Link& link = links_[e.link];
  if (!link.open[e.side]) return;
  const std::size_t to = link.end[e.side];
  trace(1, e.link, static_cast<std::uint64_t>(e.side), e.frame);
  NodeOutbox out;
  nodes_[to].node->on_frame(id_of(e.link, e.side), e.frame, now_, out);
  carry_out(to, out, link.end[1 - e.side]);
}

void Cluster::on(LinkOpens& e) {
  trace(2, e.link, 0);
  for (int side : {e.dialler, 1 - e.dialler}) {
    Link& link = links_[e.link];
    const std::size_t self = link.end[side], peer = link.end[1 - side];
    if (!link.open[side] || !nodes_[self].node) {  // the other end refused at once, or died meanwhile
      close_side(e.link, side, "connection lost");
      continue;
    }
    NodeOutbox out;
    nodes_[self].node->on_link_up({id_of(e.link, side), node_id(peer), side == e.dialler, address_of(peer)},
                                  now_, out);
    carry_out(self, out, self);
  }
}

// After what was sent before, which may wait for the downlink still.
void Cluster::on(CloseReaches& e) {
  queue_.push(network_.arrives(links_[e.link].end[e.side], 0, now_),
              LinkBreaks{e.link, e.side, "closed by the peer"});
}

void Cluster::on(LinkBreaks& e) {
  Link& link = links_[e.link];
  if (!link.open[e.side]) return;
  trace(3, e.link, static_cast<std::uint64_t>(e.side));
  link.open[e.side] = false;
  const std::size_t i = link.end[e.side];
  if (!nodes_[i].node) return;
  NodeOutbox out;
  nodes_[i].node->on_link_down(id_of(e.link, e.side), e.reason, now_, out);
  carry_out(i, out, i);
}

void Cluster::on(DialFails& e) {
  Slot& slot = nodes_[e.node];
  if (!slot.node || slot.life != e.life) return;
  trace(4, e.node, 0);
  NodeOutbox out;
  slot.node->on_dial_failed(e.address, "connection refused", now_, out);
  carry_out(e.node, out, e.node);
}

void Cluster::on(Wake& e) {
  Slot& slot = nodes_[e.node];
  if (!slot.node || slot.life != e.life || slot.wake_at != now_) return;
  slot.wake_at = never;
  trace(5, e.node, 0);
  NodeOutbox out;
  if (slot.started_life != slot.life) {
    slot.started_life = slot.life;
    slot.node->start(now_, out);
  } else {
    slot.node->on_time(now_, out);
  }
  carry_out(e.node, out, e.node);
}

void Cluster::on(ComputeDone& e) {
  Slot& slot = nodes_[e.node];
  if (!slot.node || slot.life != e.life) return;
  trace(6, e.node, 0);
  NodeOutbox out;
  auto done = std::exchange(slot.compute, std::monostate{});
  if (auto* evaluation = std::get_if<models::Evaluation>(&done)) {
    slot.node->on_evaluated(*evaluation, now_, out);
    return carry_out(e.node, out, e.node);
  }
  auto& step = std::get<StepResult>(done);
  not_finite_ = not_finite_ || !step.failure.empty();
  slot.node->on_step_done(std::move(step), now_, out);
  carry_out(e.node, out, e.node);
}

void Cluster::on(BacklogEnds& e) {
  Link& link = links_[e.link];
  const std::size_t i = link.end[e.side];
  if (!link.open[e.side] || !link.backlogged[e.side]) return;
  const std::size_t low = nodes_[i].node->protocol().backlog_marks().low;
  if (network_.waiting(i, now_) > low) {  // more has been queued since
    queue_.push(network_.falls_to(i, low), e);
    return;
  }
  link.backlogged[e.side] = false;
  NodeOutbox out;
  nodes_[i].node->on_backlog(id_of(e.link, e.side), false, now_, out);
  carry_out(i, out, i);
}

// ---- effects ----

void Cluster::carry_out(std::size_t i, NodeOutbox& out, std::size_t from) {
  Slot& slot = nodes_[i];
  for (NodeEffect& effect_of_node : out) {
    std::visit(
        [&](auto& e) {
          using E = std::decay_t<decltype(e)>;
          if constexpr (std::is_same_v<E, Applied>) {
            record_->applied(e.header.key, i, from, now_);
          } else if constexpr (std::is_same_v<E, Published>) {
            record_->published(e.update, i, now_);
          } else if constexpr (std::is_same_v<E, gossip::Note>) {
            if (e.level >= gossip::Note::Level::warning) slot.last_note = e.text;
          } else if constexpr (std::is_same_v<E, Finished>) {
            slot.ended = e.status;
          } else if constexpr (!std::is_same_v<E, SaveCheckpoint>) {
            effect(i, e);
          }
        },
        effect_of_node);
  }
  const TimePoint deadline = slot.node->next_deadline();
  if (deadline < slot.wake_at) {
    slot.wake_at = std::max(deadline, now_);
    queue_.push(slot.wake_at, Wake{i, slot.life});
  }
}

void Cluster::effect(std::size_t i, gossip::Send& e) {
  const std::size_t at = static_cast<std::uint64_t>(e.link) / 2;
  const int side = static_cast<int>(static_cast<std::uint64_t>(e.link) % 2);
  Link& link = links_[at];
  if (!link.open[side]) return;
  const std::size_t to = link.end[1 - side];
  const bool control = e.lane == gossip::Lane::control;
  TimePoint& last = link.last_reach[1 - side][control ? 1 : 0];
  last = std::max(network_.reaches(i, to, e.frame.size() + framing_bytes, control, now_), last + Duration{1});
  if (!control) last = std::max(last, link.last_reach[1 - side][1] + Duration{1});  // the one way round only
  if (group_[i] != group_[to]) return;  // lost to the partition; its link is about to break
  queue_.push(last, FrameReaches{at, 1 - side, std::move(e.frame).joined()});
  const gossip::BacklogMarks marks = nodes_[i].node->protocol().backlog_marks();
  if (!link.backlogged[side] && network_.waiting(i, now_) > marks.high) {
    link.backlogged[side] = true;
    queue_.push(network_.falls_to(i, marks.low), BacklogEnds{at, side});
    NodeOutbox out;
    nodes_[i].node->on_backlog(e.link, true, now_, out);
    carry_out(i, out, i);
  }
}

void Cluster::effect(std::size_t i, gossip::Dial& e) {
  std::size_t to = nodes_.size();
  for (std::size_t k = 0; k < nodes_.size(); ++k)
    if (address_of(k) == e.address) to = k;
  if (to == nodes_.size() || !nodes_[to].node || nodes_[to].ended || group_[i] != group_[to]) {
    const Duration wait = to < nodes_.size() ? 2 * network_.latency(i, to) : Duration{1000};
    queue_.push(now_ + wait, DialFails{i, nodes_[i].life, e.address});
    return;
  }
  Link link;
  link.end[0] = i;
  link.end[1] = to;
  links_.push_back(link);
  // TCP and TLS 1.3 handshakes: two round trips.
  queue_.push(now_ + 4 * network_.latency(i, to), LinkOpens{links_.size() - 1, 0});
}

void Cluster::effect(std::size_t, gossip::Close& e) {
  close_side(static_cast<std::uint64_t>(e.link) / 2, static_cast<int>(static_cast<std::uint64_t>(e.link) % 2),
             e.reason);
}

void Cluster::close_side(std::size_t at, int side, const std::string& reason) {
  Link& link = links_[at];
  queue_.push(now_, LinkBreaks{at, side, reason});
  const TimePoint sent = std::max(link.last_reach[1 - side][0], link.last_reach[1 - side][1]);
  const TimePoint seen = std::max(sent, now_ + network_.latency(link.end[side], link.end[1 - side]));
  queue_.push(seen + Duration{1}, CloseReaches{at, 1 - side});
}

void Cluster::effect(std::size_t i, StartStep& e) {
  Slot& slot = nodes_[i];
  slot.compute = slot.node->trainer().step(e.plan);
  const Duration step = options_.step_of(i) * config_.batches_in_turn() * e.plan.passes() / StepPlan::own_passes;
  const std::int64_t tenth = step.count() / 10;
  const Duration takes = step + Duration(step_costs_.between(-tenth, tenth));
  computed_ += takes;
  queue_.push(now_ + takes, ComputeDone{i, slot.life});
}

// Where each has a model of its own, the record evaluates what it tells of.
void Cluster::effect(std::size_t i, StartEvaluation&) {
  nodes_[i].compute = config_.has_own_models() ? models::Evaluation() : record_->evaluate(*nodes_[i].node);
  queue_.push(now_ + Duration{1}, ComputeDone{i, nodes_[i].life});
}

}  // namespace rumor::sim
