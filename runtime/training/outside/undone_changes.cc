#include "runtime/training/outside/undone_changes.h"

#include "runtime/base/check.h"

namespace rumor {

namespace {
constexpr std::size_t sample_max = 512;    // writes of one step
constexpr std::size_t writes_wanted = 1024;
constexpr double share_kept = 0.9;         // of older steps
constexpr double share_undone = 0.5;       // of what was written
}  // namespace

void UndoneChanges::wrote(std::uint32_t position, float before, float after) {
  if (sample_.size() < sample_max && before != after) sample_.push_back({position, after - before});
}

void UndoneChanges::look(std::span<const float> change) {
  if (sample_.empty()) return;
  taken_back_ *= share_kept;
  written_ *= share_kept;
  for (const Write& write : sample_) {
    RUMOR_CHECK(write.position < change.size());
    const double by = write.by;
    taken_back_ -= by * static_cast<double>(change[write.position]);
    written_ += by * by;
  }
  seen_ += sample_.size();
  sample_.clear();
}

bool UndoneChanges::found() {
  if (told_ || seen_ < writes_wanted || !(taken_back_ > share_undone * written_)) return false;
  return told_ = true;
}

}  // namespace rumor
