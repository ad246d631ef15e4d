#include "runtime/daemon/loop/checkpoint_saver.h"

#include <utility>

namespace rumor::daemon {

void CheckpointSaver::save(SaveCheckpoint checkpoint, const std::vector<gossip::KnownAddress>& known) {
  std::string addresses;
  for (const gossip::KnownAddress& one : known) addresses += one.address + "\n";
  waiting_ = Save{std::move(checkpoint), std::move(addresses)};
  if (under_way_ == 0) write_waiting();
}

void CheckpointSaver::write_waiting() {
  if (!waiting_) return;
  ++under_way_;
  storage_.submit(
      [&files = files_, save = std::move(*waiting_)] {  // it may run when this object is gone
        return files.save(save.checkpoint.bytes, save.checkpoint.contributions, save.addresses);
      },
      [this](const Result<void>& saved) { written(saved); });
  waiting_.reset();
}

void CheckpointSaver::written(const Result<void>& saved) {
  --under_way_;
  if (!saved) console_.warning("checkpoint not written: " + saved.error().text + "; training goes on");
  if (saved && !trouble_.empty()) console_.line("checkpoints are written again");
  trouble_ = saved ? "" : saved.error().text;
  write_waiting();
}

}  // namespace rumor::daemon
