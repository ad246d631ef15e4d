// Payloads with a record: a canonical payload behind bytes that say how its update was made (compress/FORMAT.md 4.8,
// runtime/AUDIT.md). Runs that record have such payloads only, all others have none.
//
// Thread: plain functions.
#pragma once

#include <optional>

#include "runtime/base/bytes.h"

namespace rumor::compress {

// The parts of a payload. They refer to it.
struct RecordedPayload {
  BytesView record;
  BytesView update;  // the canonical payload, or its link form
};

// Bytes that with_record() adds to the record and the update, at most.
inline constexpr std::size_t record_overhead = 6;
// Requires: record.size() <= limits::record_bytes_max.
Bytes with_record(BytesView record, BytesView update);
// Nothing for bytes that with_record() cannot have written.
std::optional<RecordedPayload> split_record(BytesView payload);
// The update of a payload with or without a record.
BytesView update_part(BytesView payload);

}  // namespace rumor::compress
