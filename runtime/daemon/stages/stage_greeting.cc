#include "runtime/daemon/stages/stage_greeting.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <set>
#include <variant>

#include "gossip/asio/transport.h"
#include "gossip/trust/signing.h"
#include "runtime/base/limits.h"
#include "runtime/base/time.h"

namespace rumor::daemon {

namespace {

constexpr auto greeting_patience = std::chrono::seconds(3);
constexpr auto table_ends_after = std::chrono::milliseconds(500);  // without another piece of it

class Greeter final : net::TransportEvents {
 public:
  explicit Greeter(const StageGreeting& greeting) : greeting_(greeting), keys_(greeting.identity) {}

  std::vector<gossip::StageMember> ask() {
    for (const std::string& address : greeting_.addresses) dial(address);
    end_after(dials_ == 0 ? std::chrono::milliseconds(0) : greeting_patience);
    io_.run();
    std::vector<gossip::StageMember> members;
    for (const auto& [node, record] : greeted_) records_[node] = record;
    for (const auto& [node, record] : records_)
      if (node != greeting_.identity.id())
        members.push_back({node, record.stage, record.addresses, greeted_.contains(node), {}});
    return members;
  }

 private:
  RunId membership() const { return RunId::from(greeting_.pipeline.view()); }
  void dial(const std::string& address) {
    transport_.dial(address);
    ++dials_;
  }
  // Never later than `greeting_patience` after the start, whatever peers send.
  void end_after(std::chrono::milliseconds time) {
    timer_.expires_at(std::min(asio::steady_timer::clock_type::now() + time, end_));
    timer_.async_wait([this](const asio::error_code& error) {
      if (!error) transport_.stop();
    });
  }
  void failed() {
    if (--dials_ == 0) end_after(std::chrono::milliseconds(0));
  }

  // A run that no stage is: a peer of the stage that we name refuses it, all others tell their table.
  void on_link_up(const gossip::LinkUp& up) override {
    addresses_[up.link] = up.remote_address;
    nodes_[up.link] = up.peer;
    gossip::Hello hello;
    hello.run = membership();
    hello.stream = gossip::stream_of(greeting_.identity.id(), 1);
    hello.pipeline = greeting_.pipeline;
    hello.self = {.node = greeting_.identity.id(), .number = 1, .addresses = {}};
    hello.self.admit = greeting_.admit;
    hello.self.stage = is_of_first_.contains(up.remote_address) ? 2 : 1;
    hello.self.signature = keys_.sign(record_message(membership(), hello.self));
    transport_.send(up.link, encode(hello), gossip::Lane::control);
  }
  void on_frame(gossip::LinkId link, BytesView bytes) override {
    const auto frame = gossip::decode(bytes);
    if (!frame) return transport_.close(link, "it sent a malformed frame");
    if (const auto* hello = std::get_if<gossip::Hello>(&*frame)) {
      if (hello->pipeline == greeting_.pipeline && hello->self.node == nodes_.at(link))
        greeted_[hello->self.node] = hello->self;
    }
    if (const auto* reject = std::get_if<gossip::Reject>(&*frame)) {
      for (const gossip::PeerRecord& record : reject->others) learn(record);
      const std::string& address = addresses_.at(link);
      if (reject->code == gossip::Reject::Code::other_run && is_of_first_.insert(address).second) dial(address);
    }
    if (const auto* peers = std::get_if<gossip::Peers>(&*frame)) {
      for (const gossip::PeerRecord& record : peers->records) learn(record);
      end_after(table_ends_after);
    }
  }
  void on_link_down(gossip::LinkId, const std::string&) override { failed(); }
  void on_dial_failed(const std::string&, const std::string&) override { failed(); }
  void on_backlog(gossip::LinkId, bool) override {}

  void learn(const gossip::PeerRecord& record) {
    if (!record_is_signed(keys_, membership(), record)) return;
    if (records_.size() >= limits::members_max && !records_.contains(record.node)) return;
    gossip::PeerRecord& known = records_[record.node];
    if (record.number > known.number) known = record;
  }

  const StageGreeting& greeting_;
  net::IdentityKeys keys_;
  asio::io_context io_;
  asio::steady_timer timer_{io_};
  const asio::steady_timer::time_point end_ = asio::steady_timer::clock_type::now() + greeting_patience;
  std::map<gossip::LinkId, std::string> addresses_;
  std::set<std::string> is_of_first_;  // addresses whose peers refused us as one of stage 1 with another run
  std::map<gossip::LinkId, NodeId> nodes_;
  std::map<NodeId, gossip::PeerRecord> greeted_;  // as the nodes themselves said; they live
  std::map<NodeId, gossip::PeerRecord> records_;  // as tables have them, which may be older
  std::size_t dials_ = 0;  // addresses and links that may still tell
  net::Transport transport_{io_, greeting_.identity, *this};
};

}  // namespace

std::vector<gossip::StageMember> ask_for_members(const StageGreeting& greeting) { return Greeter(greeting).ask(); }

}  // namespace rumor::daemon
