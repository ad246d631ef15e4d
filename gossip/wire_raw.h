// The frames that are not protobuf: DATA, DATA_MORE, VECTOR, SNAPSHOT_JOIN, SNAPSHOT_DATA. Internal to
// wire.cc; see wire.h.
#pragma once

#include "gossip/wire.h"

namespace rumor::gossip {

// Each takes the body, without the type byte. Errors as decode().
Result<Frame> decode_data(BytesView body);
Result<Frame> decode_data_more(BytesView body);
Result<Frame> decode_vector(BytesView body);
Result<Frame> decode_snapshot_join(BytesView body);
Result<Frame> decode_snapshot_data(BytesView body);

}  // namespace rumor::gossip
