#include "gossip/overlay/duplicate_identities.h"

#include <algorithm>
#include <utility>

#include "runtime/base/mutant.h"
#include "runtime/base/text.h"

namespace rumor::gossip {

namespace {

constexpr const char* remedy =
    "Each process needs a key of its own: stop the copy, delete identity.pem in its state directory, and start it "
    "again; it goes on as a new peer, with what it has learned";

// An address that others can dial, where the process has named one.
std::string place_of(const Link& link, const Hello& hello) {
  return hello.self.addresses.empty() ? link.address : hello.self.addresses.front();
}

}  // namespace

void DuplicateIdentities::on_own_key(Link& link, const Hello& hello) {
  const Options& options = core_.options;
  Address* entry = link.dialled_by_us ? book_.find(link.address) : nullptr;
  if (entry != nullptr) entry->ours = hello.stream == options.stream;
  if (hello.stream == options.stream && !mutant(48)) {
    if (entry != nullptr) entry->tried = true;
    return core_.close(link, "this is our own address");
  }
  if (entry != nullptr) entry->node.reset();  // it may get a key of its own
  const std::string both = str("another process runs at ", place_of(link, hello), " with the key of this peer, ",
                               options.self.brief(), options.advertise.empty() ? "" : " at ",
                               options.advertise.empty() ? "" : options.advertise.front());
  const bool is_first = std::pair(options.began, options.stream) < std::pair(hello.began, hello.stream);
  const bool we_stay = is_first != mutant(49);
  if (we_stay) {
    if (hello.stream != own_said_of_) own_said_at_ = long_ago;
    own_said_of_ = hello.stream;
    say(own_said_at_, str(both, ". It began later and has to end. ", remedy));
  } else if (core_.superseded.empty()) {
    core_.superseded = str(both, ", and began before it: this one ends. ", remedy);
  }
  core_.close(link, "another process has this peer's key");
}

bool DuplicateIdentities::greeted(const Link& link, const Hello& hello) {
  if (nodes_.size() >= limits::members_max && !nodes_.contains(link.node)) return false;
  std::vector<Session>& sessions = nodes_[link.node].sessions;
  const auto known = std::find_if(sessions.begin(), sessions.end(),
                                  [&](const Session& one) { return one.stream == hello.stream; });
  if (known != sessions.end()) {
    known->place = place_of(link, hello);
    return known + 1 != sessions.end();
  }
  if (sessions.size() == sessions_max) sessions.erase(sessions.begin());
  sessions.push_back({hello.stream, place_of(link, hello), {}, long_ago});
  if (mutant(47)) std::rotate(sessions.begin(), sessions.end() - 1, sessions.end());
  return mutant(47) && sessions.size() > 1;
}

void DuplicateIdentities::answered(const Link& link) {
  Processes& its = nodes_.at(link.node);
  std::vector<Session>& sessions = its.sessions;
  const auto earlier = std::find_if(sessions.begin(), sessions.end(),
                                    [&](const Session& one) { return one.stream == link.their_stream; });
  if (earlier == sessions.end() || earlier + 1 == sessions.end()) return;
  std::rotate(earlier, earlier + 1, sessions.end());
  Session* const two = &sessions[sessions.size() - 2];
  const std::string word = str("two processes run with the key of peer ", link.node.brief(), ": at ", two[0].place,
                               " and at ", two[1].place, ". ", remedy);
  for (Session* one : {two, two + 1})
    if (core_.now - one->told_at >= shown_for) one->word = word;
  say(its.said_at, word);
}

std::string DuplicateIdentities::word_for(const Link& link) {
  const auto at = nodes_.find(link.node);
  if (at == nodes_.end()) return {};
  for (Session& session : at->second.sessions) {
    if (session.stream != link.their_stream) continue;
    if (!session.word.empty()) session.told_at = core_.now;
    return std::exchange(session.word, {});
  }
  return {};
}

void DuplicateIdentities::on_word(const Link& link, const std::string& text) {
  if (core_.now - own_said_at_ < shown_for) return;  // it is known, and perhaps better
  say(word_said_at_, str(link.node.brief(), " at ", link.address, " says: ", text));
}

void DuplicateIdentities::look_up(const PeerRecord& record) {
  const std::vector<std::string>& own = core_.members.self().addresses;
  for (const std::string& address : record.addresses) {
    if (std::find(own.begin(), own.end(), address) != own.end()) continue;
    Address& entry = book_.at(address);
    const bool others = entry.first_contact() || (entry.node && *entry.node != core_.options.self);
    if (others || entry.dialling || entry.ours || core_.now - entry.invited_at < shown_for) continue;
    entry.node = core_.options.self;
    entry.invited_at = core_.now;
    entry.dialling = true;
    entry.purpose = Purpose::duplicate;
    core_.dial(address);
  }
}

void DuplicateIdentities::say(TimePoint& said_at, std::string text) {
  trouble_at_ = core_.now;
  trouble_ = text;
  if (core_.now - said_at < shown_for) return;
  said_at = core_.now;
  core_.note(Note::Level::warning, std::move(text));
}

}  // namespace rumor::gossip
