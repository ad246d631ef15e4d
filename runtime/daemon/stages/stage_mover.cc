#include "runtime/daemon/stages/stage_mover.h"

#include "runtime/base/text.h"

namespace rumor::daemon {

void StageMover::look(const Node& node, NodeStatus& status, bool may_move) {
  status.stage.chosen = why_;
  if (!may_move || choice_) return;
  if (!watch_) watch_.emplace(node.self(), status.stage.stage, status.stage.stages);
  if (!watch_->wants_look(now_(), status.stage.counted, node.training()) || census_.is_busy()) return;
  census_.look(node.protocol().stage_members(), [this](const std::vector<StagePeer>& live) {
    choice_ = watch_->on_look(now_(), live);
    if (choice_) moves_(str("moves to stage ", choice_->stage, ": ", choice_->why));
  });
}

}  // namespace rumor::daemon
