// The frames that are not protobuf: DATA, DATA_MORE, VECTOR, SNAPSHOT_JOIN, SNAPSHOT_DATA, COPY_ASK, COPY. Internal to
// wire.cc; see wire.h.
#pragma once

#include "gossip/wire/wire.h"

namespace rumor::gossip {

inline Result<Frame> malformed(std::string_view what) { return Error{Errc::corrupt, std::string(what)}; }

// Each takes the body, without the type byte. Errors as decode().
Result<Frame> decode_data(BytesView body);
Result<Frame> decode_data_more(BytesView body);
Result<Frame> decode_vector(BytesView body);
Result<Frame> decode_snapshot_join(BytesView body);
Result<Frame> decode_snapshot_data(BytesView body);
Result<Frame> decode_copy_ask(BytesView body);
Result<Frame> decode_copy(BytesView body);

}  // namespace rumor::gossip
