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

Result<void> keep_descriptions(const PeerFiles& files, const Training& training) {
  const std::pair<const char*, std::string> descriptions[] = {
      {"config.json", training.model_json},
      {"adapter_config.json", training.adapter_json},
      {"tokenizer.json", training.tokenizer_json},
      {"buffers.json", training.buffers_json},
      {"stage.json", training.stage ? training.stage->json : std::string()}};
  for (const auto& [name, text] : descriptions)
    if (auto kept = files.describe(name, text); !kept) return kept;
  return {};
}

}  // namespace rumor::daemon
