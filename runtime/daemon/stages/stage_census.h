// StageCensus: which members of a pipeline live, by connecting to them (gossip/PIPELINE.md 11).
//
// A member lives if its key answers at one of its addresses. The connection ends at once, without a frame. It is made
// with a key of its own, so it takes no place of this peer's links.
//
// Thread: the one that runs the io_context. Memory: a connection for each address of at most
// dialled_of_stage members of each stage.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gossip/asio/transport.h"
#include "gossip/links/figures.h"
#include "runtime/stages/stage_choice.h"

namespace rumor::daemon {

class StageCensus final : net::TransportEvents {
 public:
  static constexpr std::size_t dialled_of_stage = 16;
  static constexpr Duration patience = 3s;
  using Done = std::function<void(std::vector<StagePeer> live)>;

  explicit StageCensus(asio::io_context& io) : io_(io), timer_(io) {}

  // Calls `done` once: when all have answered or failed, at the latest after `patience`. Never from within this call.
  // Requires: !is_busy().
  void look(std::vector<gossip::StageMember> members, Done done);
  bool is_busy() const { return done_ != nullptr; }
  // Ends a look without a call of `done`.
  void stop();

 private:
  void on_link_up(const gossip::LinkUp& up) override;
  void on_frame(gossip::LinkId, BytesView) override {}
  void on_link_down(gossip::LinkId, const std::string&) override {}
  void on_dial_failed(const std::string&, const std::string&) override { answered(); }
  void on_backlog(gossip::LinkId, bool) override {}
  void answered();
  void wait(Duration time);

  asio::io_context& io_;
  asio::steady_timer timer_;
  std::optional<net::Transport> transport_;  // of the look under way
  std::map<NodeId, std::uint32_t> stages_;   // of members that may be found
  std::set<NodeId> live_;
  std::size_t dials_ = 0;  // without an answer
  Done done_;
};

}  // namespace rumor::daemon
