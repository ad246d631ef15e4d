// The name of a stream shows its node: eight random bytes, then eight bytes of SHA-256("rumor-stream-v1\0", node,
// random). Nobody can take names in another's stream, or sign one as his own, short of 2^64 keys (PROTOCOL.md 6.8).
//
// Thread: pure functions.
#pragma once

#include "runtime/base/types.h"

namespace rumor::gossip {

StreamId stream_of(const NodeId& node, std::uint64_t random);
bool stream_belongs_to(const StreamId& stream, const NodeId& node);

}  // namespace rumor::gossip
