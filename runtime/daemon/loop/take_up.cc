#include "runtime/daemon/loop/take_up.h"

namespace rumor::daemon {

Result<void> take_up_state(Node& node, const PeerFiles& files, Console& console) {
  const auto opened = node.open_disk();
  if (!opened) return files.with_unlike_parts(opened.error());
  if (!opened->empty()) console.line(*opened);
  const auto loaded = files.load([&node](BytesView bytes) { return node.restore(bytes); });
  if (!loaded) return files.with_unlike_parts(loaded.error());
  if (!loaded->empty()) console.line(*loaded);
  if (const auto table = PeerFiles::contributions_of(files.directory()))
    if (auto read = node.restore_contributions(*table); !read)
      console.warning("contributions: " + read.error().text + "; samples of earlier updates are unknown");
  return {};
}

}  // namespace rumor::daemon
