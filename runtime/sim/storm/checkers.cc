#include "runtime/sim/storm/checkers.h"

#include <algorithm>
#include <set>

#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor::sim {

namespace {

bool same(const gossip::UpdateHeader& a, const gossip::UpdateHeader& b) {
  return a.key == b.key && a.origin == b.origin && a.payload_hash == b.payload_hash &&
         a.fingerprint == b.fingerprint && a.period == b.period && a.samples == b.samples;
}

// By arithmetic of its own.
void add(const ParamLayout& layout, const Bytes& payload, std::span<std::int32_t> sum) {
  const auto update = compress::decode(layout, payload);
  RUMOR_CHECK(update.ok());
  for (const compress::StepRun& run : compress::step_runs(layout, *update)) {
    const auto step = static_cast<std::uint32_t>(run.step);
    for (std::size_t e = run.first; e < run.first + run.count; ++e) {
      const auto weight = static_cast<std::uint32_t>(sum[update->index[e]]);
      sum[update->index[e]] = static_cast<std::int32_t>(update->negative[e] ? weight - step : weight + step);
    }
  }
}

}  // namespace

Checkers::Checkers(ProtocolWorld& world, const std::vector<SimModel>& runs) : world_(world), mirrors_(world.hosts()) {
  for (const SimModel& model : runs) runs_.push_back({&model});
  if (runs_.empty()) runs_.push_back({&world.options().model});
  if (world.options().payload_bytes == 0)
    for (Run& run : runs_) run.base = Fingerprinter(run.model->form.run).of_weights(run.model->initial);
  world.observe(*this);
}

// ---- after each turn ----

void Checkers::started(HostId i) {
  mirrors_[i] = {};
  mirrors_[i].fingerprint = runs_[run_of(i)].base;
  starts_[i] = world_.now();
  const auto first = first_start_.try_emplace(world_.host(i).id, i, world_.now()).first;
  if (first->second.first != i) cloned_ = true;
}

void Checkers::mark(HostId i, const gossip::UpdateHeader& header) {
  if (!mirrors_[i].have.insert(header.key))
    return world_.violate("I1", i, "an update is applied twice", header.key);
  mirrors_[i].fingerprint = Fingerprinter::add(mirrors_[i].fingerprint, header.fingerprint);
}

void Checkers::sealed(HostId i, const gossip::StoredUpdate& update) {
  const bool fresh =
      books_.emplace(update.header.key, Entry{update.header, update.payload, world_.now()}).second;
  if (!fresh) world_.violate("I1", i, "a name is used for a second update", update.header.key);
  payload_bytes_ += update.payload->size();
  mark(i, update.header);
}

void Checkers::applied(HostId i, const gossip::UpdateHeader& header, HostId) {
  const auto at = books_.find(header.key);
  if (at == books_.end())
    return world_.violate("I1", i, "an update is applied that nobody has made", header.key);
  if (!same(at->second.header, header))
    return world_.violate("I1", i, "an update is not what was sealed", header.key);
  mark(i, header);
  if (!flowing_ || at->second.sealed_at < flow_from_) return;
  ++flow_.deliveries;
  flow_.delays.push_back(world_.now() - at->second.sealed_at);
}

void Checkers::replaced(HostId i) {
  Mirror& mirror = mirrors_[i];
  const Host& host = world_.host(i);
  mirror.have = host.peer->have();
  mirror.fingerprint = runs_[run_of(i)].base;
  for (const auto& [stream, ranges] : mirror.have.streams()) {
    for (const gossip::SeqRange& range : ranges) {
      for (std::uint64_t seq = range.first; seq <= range.last; ++seq) {
        const auto at = books_.find({stream, seq});
        if (at == books_.end())
          return world_.violate("I1", i, "a replica claims what nobody has made", {stream, seq});
        mirror.fingerprint = Fingerprinter::add(mirror.fingerprint, at->second.header.fingerprint);
      }
    }
  }
  check_weights(i);
}

void Checkers::turned(HostId i) {
  const Host& host = world_.host(i);
  const gossip::HaveSet& have = host.peer->have();
  const Mirror& mirror = mirrors_[i];
  if (have.count() != mirror.have.count())
    return world_.violate(
        "I2", i, str("its have-set names ", have.count(), " updates, it applied ", mirror.have.count()));
  if (host.peer->fingerprint() != mirror.fingerprint)
    return world_.violate("I2", i, "its fingerprint is not that of the updates it applied");
  check_identities(i);
  if (!host.peer->log_in_bounds()) world_.violate("I3", i, "its log is longer than it may be");
  if (const std::string text = host.peer->protocol().divergence(); !text.empty()) world_.violate("I6", i, text);
  const bool superseded = !host.peer->protocol().superseded().empty();  // a clone is up
  if (const std::string text = host.peer->failure(); !text.empty() && !superseded) world_.violate("L2", i, text);
}

void Checkers::check_identities(HostId i) {
  const gossip::Protocol& protocol = world_.host(i).peer->protocol();
  const auto& [first, at] = first_start_.at(world_.host(i).id);
  // Equal milliseconds are decided by the streams' names.
  const bool is_first = first == i && starts_.at(i) - at < 1ms;
  if (is_first && protocol.superseded().find("and began before it") != std::string::npos)
    return world_.violate("I14", i, protocol.superseded());
  if (cloned_) return;
  std::string said = protocol.identity_trouble();
  if (said.empty()) said = protocol.superseded();
  const bool two = said.find("another process runs") == 0 || said.find("two processes run") != std::string::npos;
  if (two) world_.violate("I13", i, said);
}

// ---- now and then ----

void Checkers::check_weights(HostId i) {
  const Replica* replica = world_.host(i).peer->replica();
  if (replica == nullptr) return;
  if (!replica->verify()) world_.violate("I2", i, "its weights do not have its fingerprint");
  if (!(replica->have() == mirrors_[i].have)) world_.violate("I2", i, "its have-set is not what it applied");
}

gossip::HaveSet Checkers::held() const {
  gossip::HaveSet all;
  for (HostId i = 0; i < world_.hosts(); ++i)
    if (world_.host(i).up()) all.merge(world_.host(i).peer->have());
  return all;
}

std::uint64_t Checkers::said_lost() const {
  std::uint64_t lost = 0;
  for (HostId i = 0; i < world_.hosts(); ++i) {
    const Host& host = world_.host(i);
    lost += host.lost_before + (host.up() ? host.peer->protocol().counters().updates_lost : 0);
  }
  return lost;
}

bool Checkers::equal() const {
  std::vector<const Host*> firsts(runs_.size());
  for (HostId i = 0; i < world_.hosts(); ++i) {
    const Host& host = world_.host(i);
    if (!host.up()) continue;
    const Host*& first = firsts[run_of(i)];
    if (first == nullptr) first = &host;
    if (!(host.peer->have() == first->peer->have())) return false;
  }
  return true;
}

// ---- at the end ----

void Checkers::check_kept(const gossip::HaveSet& before) {
  const gossip::HaveSet gone = held().missing_from(before);
  if (gone.count() <= said_lost()) return;
  const auto& [stream, ranges] = *gone.streams().begin();
  world_.violate("I7", 0,
                 str(gone.count(), " updates are gone and only ", said_lost(), " were said to be lost"),
                 {stream, ranges.front().first});
}

void Checkers::check_equal() {
  for (std::size_t run = 0; run < runs_.size(); ++run) check_equal(run);
}

void Checkers::check_equal(std::size_t run) {
  const SimModel& model = *runs_[run].model;
  std::vector<std::int32_t> sum;
  const gossip::HaveSet* summed = nullptr;
  for (HostId i = 0; i < world_.hosts(); ++i) {
    const bool is_here = run_of(i) == run && world_.host(i).up();
    const Replica* replica = is_here ? world_.host(i).peer->replica() : nullptr;
    if (replica == nullptr) continue;
    if (summed == nullptr) {
      summed = &replica->have();
      sum.assign(model.initial.begin(), model.initial.end());
      for (const auto& [key, entry] : books_)
        if (summed->contains(key)) add(model.form.layout, *entry.payload, sum);
    }
    if (!(replica->have() == *summed))
      return world_.violate("I8", i, "its have-set differs from that of others");
    const auto weights = replica->weights();
    if (!std::equal(sum.begin(), sum.end(), weights.begin(), weights.end()))
      return world_.violate("I8", i, "its weights are not the sum of its updates");
  }
}

std::map<NodeId, HostId> Checkers::living(std::size_t run) const {
  std::map<NodeId, HostId> living;
  for (HostId i = 0; i < world_.hosts(); ++i)
    if (run_of(i) == run && world_.host(i).up()) living[world_.host(i).id] = i;
  return living;
}

bool Checkers::meshed() const {
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    const std::map<NodeId, HostId> all = living(run);
    for (const auto& [node, i] : all)
      if (world_.host(i).peer->protocol().peers().size() < std::min(all.size() - 1, limits::links_low)) return false;
  }
  return true;
}

void Checkers::check_overlay() {
  for (std::size_t run = 0; run < runs_.size(); ++run) check_overlay(run);
}

void Checkers::check_overlay(std::size_t run) {
  const std::map<NodeId, HostId> living = this->living(run);
  if (living.size() < 2) return;
  std::set<HostId> seen;
  std::vector<HostId> next{living.begin()->second};
  while (!next.empty()) {
    const HostId i = next.back();
    next.pop_back();
    if (!seen.insert(i).second) continue;
    const std::vector<gossip::PeerInfo> peers = world_.host(i).peer->protocol().peers();
    if (peers.size() > limits::links_high)
      return world_.violate("I10", i, str("it has ", peers.size(), " links"));
    if (peers.size() < std::min(living.size() - 1, limits::links_low))
      return world_.violate("I10", i, str("it has only ", peers.size(), " links"));
    for (const gossip::PeerInfo& peer : peers)
      if (living.contains(peer.node)) next.push_back(living.at(peer.node));
  }
  if (seen.size() != living.size()) world_.violate("I10", *seen.begin(), "the overlay is not connected");
}

// ---- flow ----

std::uint64_t Checkers::duplicates() const {
  std::uint64_t sum = 0;
  for (HostId i = 0; i < world_.hosts(); ++i)
    if (world_.host(i).up()) sum += world_.host(i).peer->protocol().counters().updates_duplicate;
  return sum;
}

void Checkers::begin_flow() {
  flowing_ = true;
  flow_ = {};
  flow_from_ = world_.now();
  duplicates_before_ = duplicates();
}

Checkers::Flow Checkers::end_flow() {
  flowing_ = false;
  flow_.duplicates = duplicates() - duplicates_before_;
  std::sort(flow_.delays.begin(), flow_.delays.end());
  return std::move(flow_);
}

}  // namespace rumor::sim
