// The frames that are not protobuf: DATA, DATA_MORE, VECTOR, SNAPSHOT_JOIN, SNAPSHOT_DATA, COPY_ASK, COPY, BUFFERS,
// ACTIVATIONS, GRADIENTS, and those of audits.
// Internal to wire.cc; see wire.h.
#pragma once

#include "gossip/wire/wire.h"

namespace rumor::gossip {

inline Result<Frame> malformed(std::string_view what) { return Error{Errc::corrupt, std::string(what)}; }

// Stands in the frame table for a body that is not protobuf.
struct Raw;

// Takes the body, without the type byte. Errors as decode(). One specialisation for each Raw row of the table.
template <class Message>
Result<Frame> decode_raw(BytesView body);
template <>
Result<Frame> decode_raw<Data>(BytesView body);
template <>
Result<Frame> decode_raw<DataMore>(BytesView body);
template <>
Result<Frame> decode_raw<Vector>(BytesView body);
template <>
Result<Frame> decode_raw<SnapshotJoin>(BytesView body);
template <>
Result<Frame> decode_raw<SnapshotData>(BytesView body);
template <>
Result<Frame> decode_raw<CopyAsk>(BytesView body);
template <>
Result<Frame> decode_raw<Copy>(BytesView body);
template <>
Result<Frame> decode_raw<Buffers>(BytesView body);
template <>
Result<Frame> decode_raw<TakenBack>(BytesView body);
template <>
Result<Frame> decode_raw<StateWant>(BytesView body);
template <>
Result<Frame> decode_raw<StateData>(BytesView body);
template <>
Result<Frame> decode_raw<Charge>(BytesView body);
template <>
Result<Frame> decode_raw<Activations>(BytesView body);
template <>
Result<Frame> decode_raw<Gradients>(BytesView body);

}  // namespace rumor::gossip
