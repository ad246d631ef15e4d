#include "runtime/audit/proof.h"

#include <utility>

#include "gossip/contract/stream_name.h"

namespace rumor::audit {

std::optional<gossip::Revocation> proof_of(const NodeId& node, const UpdateKey& false_update,
                                           const gossip::HaveSet& view) {
  std::vector<UpdateKey> kept;
  for (const auto& [stream, ranges] : view.streams())
    if (stream != false_update.stream && gossip::stream_belongs_to(stream, node))
      kept.push_back({stream, ranges.back().last});
  if (kept.size() + 1 > gossip::Revocation::kept_max) return std::nullopt;
  return gossip::Revocation::proof(node, false_update, std::move(kept));
}

}  // namespace rumor::audit
