#include "gossip/links/core.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/mutant.h"

namespace rumor::gossip {

namespace {

// What we say of ourselves must satisfy what we ask of others.
Options made_fit(Options options) {
  std::erase_if(options.run_name, [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
  options.run_name.resize(std::min<std::size_t>(options.run_name.size(), 128));
  options.advertise = fit_addresses(options.self, std::move(options.advertise));
  return options;
}

HaveSet minus(HaveSet set, const std::set<Revocation>& revocations) {
  if (revocations.empty()) return set;
  HaveSet left = set;
  for (const auto& [stream, ranges] : set.streams()) {
    for (const Revocation& one : revocations)
      if (one.covers({stream, one.range.first})) left.erase(stream, one.range);
  }
  return left;
}

const Keys& checked(const std::shared_ptr<const Keys>& keys) {
  RUMOR_CHECK(keys != nullptr);
  return *keys;
}

}  // namespace

std::vector<std::string> fit_addresses(const NodeId& self, std::vector<std::string> addresses) {
  std::erase_if(addresses, [&](const std::string& address) {
    return PeerRecord{self, 1, {address}}.invalid().has_value();
  });
  return addresses;
}

Core::Core(Options options_in, UpdateStore& store_in, Prng prng_in)
    : options(made_fit(std::move(options_in))),
      rule(options.rule),
      store(store_in),
      prng(prng_in),
      keys(checked(options.keys)),
      members(options.self, options.run, keys, options.advertise, options.admit) {
  intern(options.stream);
  published = store.have().head(options.stream);
}

void Core::begin(TimePoint time, Outbox& out) {
  now = std::max(now, time);
  out_ = &out;
}

void Core::send(Link& link, OutFrame frame) {
  RUMOR_CHECK(!frame.head.empty());
  const Lane lane = frame_row(frame.head[0]).lane;
  send(link, std::move(frame), lane);
}

void Core::send(Link& link, OutFrame frame, Lane lane) {
  if (link.state == Link::State::closing) return;
  RUMOR_CHECK(frame.size() <= limits::frame_bytes_max);
  link.live_sent |= lane == Lane::live;
  counters.sent_bytes += frame.size();
  if (frame_row(frame.head[0]).lane == Lane::control) counters.sent_control_bytes += frame.size();
  link.sent_bytes += frame.size();
  link.sent_at = now;
  out_->push_back(Send{link.id, std::move(frame), lane});
}

void Core::close(Link& link, std::string reason) {
  if (link.state == Link::State::closing) return;
  link.state = Link::State::closing;
  link.close_reason = reason;
  out_->push_back(Close{link.id, std::move(reason)});
}

void Core::ban(Link& link, std::string reason) {
  if (link.state == Link::State::closing) return;
  scores.has_forged(link.node, now);
  note(Note::Level::warning, link.node.brief() + " " + reason + "; it is not linked for an hour");
  close(link, std::move(reason));
}

void Core::shun(Link& link, std::string reason) {
  if (link.state == Link::State::closing) return;
  scores.has_overburdened(link.node, now);
  note(Note::Level::warning, link.node.brief() + " " + reason + "; it is not linked for ten minutes");
  close(link, std::move(reason));
}

Link* Core::find(LinkId link) {
  const auto at = links.find(link);
  return at != links.end() && at->second.admitted() ? &at->second : nullptr;
}

Link* Core::link_to(const NodeId& node) {
  for (auto& [id, link] : links) {
    if (link.admitted() && link.node == node) return &link;
  }
  return nullptr;
}

std::size_t Core::admitted_count() const {
  return static_cast<std::size_t>(
      std::count_if(links.begin(), links.end(), [](const auto& entry) { return entry.second.admitted(); }));
}

std::optional<StreamIndex> Core::intern(const StreamId& stream) {
  const auto at = stream_numbers_.find(stream);
  if (at != stream_numbers_.end()) return at->second;
  Stream fresh{stream, {}, {}, 0, 0, refused(stream), {}};
  auto number = static_cast<StreamIndex>(streams.size());
  if (!free_streams_.empty()) {
    number = free_streams_.back();
    free_streams_.pop_back();
    streams[number] = std::move(fresh);
  } else {
    if (streams.size() >= limits::streams_max) return std::nullopt;
    streams.push_back(std::move(fresh));
  }
  stream_numbers_.emplace(stream, number);
  return number;
}

// ---- what is not taken ----

bool Core::refused(const StreamId& stream) const {
  if (rule.refused.empty() || store.have().streams().contains(stream)) return false;
  const auto decided = proven.lower_bound({stream, 0});  // one of two was taken back: the other must come
  if (decided != proven.end() && decided->first.stream == stream) return false;
  return std::any_of(rule.refused.begin(), rule.refused.end(),
                     [&](const NodeId& node) { return stream_belongs_to(stream, node); });
}

void Core::mark_refused() {
  for (Stream& stream : streams) stream.refused = refused(stream.id);
}

bool Core::unwanted(const LocalKey& key) const {
  if (streams[key.stream].refused) return true;
  if (streams[key.stream].id == options.stream && key.seq > published) return true;
  const auto& revocations = store.revocations();
  return std::any_of(revocations.begin(), revocations.end(),
                     [&](const Revocation& one) { return one.covers(key_of(key)); });
}

HaveSet Core::wanted(const HaveSet& set) const {
  HaveSet left = minus(set, store.revocations());
  left.erase(options.stream, {published + 1, seq_max});
  if (rule.refused.empty()) return left;
  for (const auto& [stream, ranges] : set.streams()) {
    if (refused(stream)) left.erase(stream, {1, seq_max});
  }
  return left;
}

HaveSet Core::keepable(HaveSet set) const {
  return minus(std::move(set), cannot_revoke);
}

std::uint32_t Core::name_stream(Link& link, StreamIndex stream, bool with_origin) {
  LinkStream& named = link.on(stream);
  const bool origin_due = with_origin && !named.origin_named;
  if (named.named && !origin_due) return named.our_index;
  if (!named.named) named.our_index = mutant(42) && link.streams_named > 4 ? 4 : link.streams_named++;
  named.named = true;
  named.origin_named = streams[stream].origin.has_value();
  RUMOR_CHECK(!with_origin || named.origin_named);
  send(link, encode(StreamDef{named.our_index, streams[stream].id, streams[stream].origin}));
  return named.our_index;
}

void Core::changed() {
  changed_at = now;
  if (changed_since == never) changed_since = now;
}

void Core::count_update(std::size_t payload_bytes) {
  // The mean of the first ones, then a running one over about as many.
  updates_counted_ = std::min(updates_counted_ + 1, updates_averaged);
  const std::uint64_t before = updates_counted_ - 1;
  mean_update_bytes_ = (mean_update_bytes_ * before + payload_bytes + before) / updates_counted_;
}

}  // namespace rumor::gossip
