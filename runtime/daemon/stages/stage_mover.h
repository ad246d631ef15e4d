// StageMover: watches whether this peer is to serve another stage of its pipeline (gossip/PIPELINE.md 11).
//
// Thread: the one that runs the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "runtime/daemon/stages/stage_census.h"
#include "runtime/node/node.h"
#include "runtime/stages/stage_choice.h"

namespace rumor::daemon {

class StageMover {
 public:
  using Now = std::function<TimePoint()>;
  using Moves = std::function<void(const std::string& words)>;  // for people

  // `why` the peer serves its stage now. `moves` is called once, when it is this peer's turn to move. Both functions
  // stay valid until stop().
  StageMover(asio::io_context& io, std::string why, Now now, Moves moves)
      : census_(io), why_(std::move(why)), now_(std::move(now)), moves_(std::move(moves)) {}

  // Call it several times a second. Fills in why the stage was chosen. `may_move`: false once the peer ends.
  void look(const Node& node, NodeStatus& status, bool may_move);
  // The stage to move to, once `moves` was called.
  const std::optional<StageChoice>& choice() const { return choice_; }
  void stop() { census_.stop(); }

 private:
  StageCensus census_;
  std::string why_;
  Now now_;
  Moves moves_;
  std::optional<StageWatch> watch_;
  std::optional<StageChoice> choice_;
};

}  // namespace rumor::daemon
