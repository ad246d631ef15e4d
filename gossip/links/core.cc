#include "gossip/links/core.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace rumor::gossip {

namespace {

// Our own texts and addresses must pass the checks that we make on others.
Options made_fit(Options options) {
  std::erase_if(options.run_name, [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; });
  options.run_name.resize(std::min<std::size_t>(options.run_name.size(), 128));
  options.advertise = fit_addresses(options.self, std::move(options.advertise));
  return options;
}

RunId membership_of(const Options& options) {
  return options.stage ? options.stage->membership() : options.run;
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
      members(options.self, membership_of(options), keys, options.advertise, options.admit, own_stage()) {
  RUMOR_CHECK(options.stage.has_value() == (options.stage_links != nullptr));
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
  // Announcements carry no payload, although they travel in its lane.
  const bool announces = frame.head[0] == static_cast<std::uint8_t>(FrameType::have);
  if (announces || frame_row(frame.head[0]).lane == Lane::control) counters.sent_control_bytes += frame.size();
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

Link& Core::add_link(const LinkUp& up) {
  const auto [at, fresh] = links.try_emplace(up.link);
  RUMOR_CHECK(fresh);
  Link& link = at->second;
  link.id = up.link;
  link.node = up.peer;
  link.dialled_by_us = up.dialled_by_us;
  link.address = up.remote_address;
  link.coder = store.coder_for_link();
  link.up_at = link.heard_at = link.sent_at = link.data_at = link.progress_at = link.control_at = now;
  return link;
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

RunId Core::membership() const { return membership_of(options); }

std::uint32_t Core::other_stage(const std::optional<NodeId>& node) const {
  if (!options.stage || !node) return 0;
  const Member* const member = members.find(*node);
  return member == nullptr || is_of_run(member->record) ? 0 : member->record.stage;
}

std::size_t Core::members_of_run() const {
  if (!options.stage) return members.all().size();
  return static_cast<std::size_t>(std::count_if(members.all().begin(), members.all().end(), [this](const auto& one) {
    return is_of_run(one.second.record);
  }));
}

bool Core::charge(Link& link, std::uint64_t units) {
  const auto elapsed_ms = static_cast<std::uint64_t>((now - link.control_at) / Duration{1ms});
  if (elapsed_ms > 0) {
    const std::uint64_t earned = std::min<std::uint64_t>(elapsed_ms, 60'000) * limits::control_per_second / 1'000;
    link.control_left = std::min(link.control_left + earned, limits::control_burst);
    link.control_at = now;
  }
  if (units > link.control_left) {
    shun(link, "asks for more work than a link may");
    return false;
  }
  link.control_left -= units;
  return true;
}

}  // namespace rumor::gossip
