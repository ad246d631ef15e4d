// The frames that are not protobuf: DATA, VECTOR, SNAPSHOT_DATA. Internal to wire.cc; see wire.h.
#pragma once

#include "gossip/wire.h"

namespace rumor::gossip {

// Each takes the body, without the type byte. Errors as decode().
Result<Frame> decode_data(BytesView body);
Result<Frame> decode_vector(BytesView body);
Result<Frame> decode_snapshot_data(BytesView body);

}  // namespace rumor::gossip
