#include "gossip/contract/state_pieces.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace rumor::gossip {

std::shared_ptr<const KeptState> keep_state(Bytes bytes) {
  RUMOR_CHECK(!bytes.empty() && bytes.size() <= limits::state_bytes_max);
  KeptState state{std::move(bytes), {}, {}};
  const BytesView all(state.bytes);
  for (std::size_t at = 0; at < all.size(); at += state_piece_bytes) {
    const Hash256 hash = sha256(all.subspan(at, std::min(state_piece_bytes, all.size() - at)));
    state.list.insert(state.list.end(), hash.bytes.begin(), hash.bytes.end());
  }
  state.root = sha256(state.list);
  return std::make_shared<const KeptState>(std::move(state));
}

}  // namespace rumor::gossip
