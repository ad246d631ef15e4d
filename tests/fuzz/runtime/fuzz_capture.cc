// Fuzzes the reader of captures, and the payload decoder behind it.
#include "compress/payload/update.h"
#include "runtime/replica/capture.h"
#include "tests/fuzz/target.h"

using namespace rumor;

FUZZ_TARGET(capture) {
  const auto capture = decode_capture({data, size});
  if (!capture) return 0;
  std::size_t accepted = 0;
  for (const Bytes& payload : capture->payloads)
    accepted += compress::decode(capture->form.layout, payload).ok() ? 1 : 0;
  RUMOR_CHECK(accepted <= capture->payloads.size());
  return 0;
}
