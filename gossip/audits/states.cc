#include "gossip/audits/states.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

// Part n of a state; nothing beyond its end.
BytesView part_of_state(const KeptState& state, std::uint32_t part) {
  if (part == 0) return state.list;
  const std::size_t at = (part - 1) * state_piece_bytes;
  if (at >= state.bytes.size()) return {};
  return BytesView(state.bytes).subspan(at, std::min(state_piece_bytes, state.bytes.size() - at));
}

}  // namespace

// ---- fetching ----

void States::want(WantedState wanted) {
  if (WantedState* const same = wanted_already(wanted.update); same != nullptr) {
    for (const NodeId& holder : wanted.holders)
      if (std::find(same->holders.begin(), same->holders.end(), holder) == same->holders.end())
        same->holders.push_back(holder);
    return;
  }
  if (wanted.bytes == 0 || wanted.bytes > limits::state_bytes_max)
    return core_.options.audits->state_failed(wanted.update, "it has a size that no state may have");
  if (waiting_.size() >= waiting_max)
    return core_.options.audits->state_failed(wanted.update, "too many states are being fetched");
  waiting_.push_back(std::move(wanted));
  begin_next();
}

WantedState* States::wanted_already(const UpdateKey& update) {
  if (fetch_ && fetch_->wanted.update == update) return &fetch_->wanted;
  const auto same = std::find_if(waiting_.begin(), waiting_.end(),
                                 [&](const WantedState& one) { return one.update == update; });
  return same == waiting_.end() ? nullptr : &*same;
}

void States::begin_next() {
  while (!fetch_ && !waiting_.empty()) {
    fetch_ = Fetch{std::move(waiting_.front())};
    waiting_.pop_front();
    ask_next_holder();
  }
}

void States::ask_next_holder() {
  if (fetch_->link) overlay_.errand_over(*fetch_->link);
  fetch_->link.reset();
  while (fetch_->holder < fetch_->wanted.holders.size()) {
    const NodeId& node = fetch_->wanted.holders[fetch_->holder++];
    if (node == core_.options.self) continue;
    fetch_->given_up = core_.now + silent_max;
    Link* const link = core_.link_to(node);
    if (link != nullptr) return ask_holder(*link);
    due_ = core_.now + look_again;
    if (overlay_.dial_member(node)) return;
  }
  fail("no peer that may have it gives it");
}

void States::ask_holder(Link& link) {
  fetch_->link = link.id;
  due_ = core_.now + silent_max;
  fetch_->asked = fetch_->received = 0;
  fetch_->list.clear();
  fetch_->bytes.clear();
  ask_parts(link);
}

// The list is asked for alone: the pieces are worth nothing without it.
void States::ask_parts(Link& link) {
  const std::uint64_t count = fetch_->received == 0 ? 1 : 1 + state_pieces(fetch_->wanted.bytes);
  while (fetch_->asked < count && fetch_->asked - fetch_->received < in_flight_max) {
    core_.send(link, encode(StateWant{fetch_->wanted.update, fetch_->asked++}));
    ++links_[link.id].owed;
  }
}

void States::on_data(Link& link, const StateData& data) {
  std::uint32_t& owed = links_[link.id].owed;
  if (owed == 0) return core_.close(link, "sends a part of a state that was not wanted");
  --owed;
  if (!fetch_ || fetch_->link != link.id || data.update != fetch_->wanted.update) return;  // given up meanwhile
  if (data.part != fetch_->received) return core_.close(link, "sends another part of a state than was wanted");
  if (data.bytes.empty()) {
    ask_next_holder();
    return begin_next();
  }
  if (!take_part(data)) return core_.ban(link, "sends a state that does not have the root of its update");
  ++fetch_->received;
  due_ = core_.now + silent_max;
  if (fetch_->bytes.size() < fetch_->wanted.bytes) return ask_parts(link);
  overlay_.errand_over(link.id);
  Fetch done = *std::exchange(fetch_, std::nullopt);
  core_.options.audits->state_arrived(done.wanted.update, std::move(done.bytes));
  begin_next();
}

bool States::take_part(const StateData& data) {
  if (data.part == 0) {
    fetch_->list.assign(data.bytes.begin(), data.bytes.end());
    return fetch_->list.size() == state_pieces(fetch_->wanted.bytes) * Hash256::size &&
           sha256(fetch_->list) == fetch_->wanted.root;
  }
  const std::uint64_t left = fetch_->wanted.bytes - fetch_->bytes.size();
  const BytesView hash = BytesView(fetch_->list).subspan((data.part - 1) * Hash256::size, Hash256::size);
  if (data.bytes.size() != std::min<std::uint64_t>(left, state_piece_bytes)) return false;
  if (sha256(data.bytes) != Hash256::from(hash)) return false;
  fetch_->bytes.insert(fetch_->bytes.end(), data.bytes.begin(), data.bytes.end());
  return true;
}

void States::admitted(Link& link) {
  if (fetch_ && !fetch_->link && fetch_->wanted.holders[fetch_->holder - 1] == link.node) ask_holder(link);
}

void States::link_lost(const Link& link) {
  links_.erase(link.id);
  if (!fetch_ || fetch_->link != link.id) return;
  if (fetch_->lost_links++ < lost_links_max) --fetch_->holder;  // that was no refusal: ask the same one again
  ask_next_holder();
  begin_next();
}

void States::fail(const std::string& why) {
  const Fetch failed = *std::exchange(fetch_, std::nullopt);
  core_.options.audits->state_failed(failed.wanted.update, why);
}

bool States::holder_comes() const {
  if (fetch_->link || fetch_->given_up <= core_.now) return false;
  return overlay_.is_coming(fetch_->wanted.holders[fetch_->holder - 1]);
}

void States::tick() {
  if (fetch_ && due_ <= core_.now) {
    if (holder_comes()) {
      due_ = core_.now + look_again;
    } else {
      ask_next_holder();
    }
  }
  begin_next();
}

// ---- giving ----

bool States::gives() const {
  return std::any_of(links_.begin(), links_.end(), [](const auto& of) { return of.second.granted != nullptr; });
}

void States::on_want(Link& link, const StateWant& want) {
  if (core_.options.audits == nullptr) return;
  OnLink& its = links_[link.id];
  if (want.part == 0) {
    its.granted = core_.options.audits->state(want.update, link.node);
    its.update = want.update;
  }
  const bool has = its.granted != nullptr && its.update == want.update;
  const BytesView bytes = has ? part_of_state(*its.granted, want.part) : BytesView();
  if (bytes.empty() && want.part != 0) return core_.close(link, "asks for a part of a state that it was not given");
  core_.send(link, encode(StateData{want.update, want.part, bytes}));
  if (has && want.part == state_pieces(its.granted->bytes.size())) its.granted.reset();
}

}  // namespace rumor::gossip
