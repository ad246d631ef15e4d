// RunForm: run, tensors and grid. A file of a run that holds these can be read without its run file.
//
// In bytes: run id (16), the parameter layout (runtime/base/param_layout.h), grid bits (u8, 8..30).
//
// Thread: plain values.
#pragma once

#include "runtime/base/param_layout.h"

namespace rumor {

struct RunForm {
  RunId run;
  ParamLayout layout;
  int grid_bits = 24;  // a weight is its integer times 2^-grid_bits
  // Payloads have a record (compress/payload/recorded.h). Not in the bytes: who reads a file of the run takes both.
  bool recorded = false;

  void encode(ByteWriter& out) const;
  // Errors: Errc::corrupt, Errc::limit.
  static Result<RunForm> decode(ByteReader& in);
};

}  // namespace rumor
