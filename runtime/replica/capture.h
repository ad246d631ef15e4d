// Captures: a peer's own updates as a file, for `rumor stats`.
//
// Layout (little-endian): magic "RUMORCAP" and 0x01, the version; the run's form
// (runtime/replica/run_form.h); then one record per update: varint length, payload (compress/FORMAT.md). A file cut
// off within its last record is read up to there: a process may have been killed while writing.
//
// Thread: plain functions. No I/O here.
#pragma once

#include <vector>

#include "runtime/replica/run_form.h"

namespace rumor {

struct Capture {
  RunForm form;
  std::vector<Bytes> payloads;
  bool cut_off = false;  // the last record was incomplete and left out
};

bool looks_like_capture(BytesView bytes);
Bytes encode_capture_head(const RunForm& form);
Bytes encode_capture_record(BytesView payload);
// Errors: Errc::corrupt, Errc::mismatch (another version).
Result<Capture> decode_capture(BytesView bytes);

}  // namespace rumor
