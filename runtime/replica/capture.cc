#include "runtime/replica/capture.h"

#include <algorithm>

#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor {

namespace {
constexpr std::uint8_t capture_magic[9] = {'R', 'U', 'M', 'O', 'R', 'C', 'A', 'P', 1};
}

bool looks_like_capture(BytesView bytes) {
  return bytes.size() >= 8 && std::equal(capture_magic, capture_magic + 8, bytes.begin());
}

Bytes encode_capture_head(const RunForm& form) {
  ByteWriter out;
  out.raw(capture_magic);
  form.encode(out);
  return out.take();
}

Bytes encode_capture_record(BytesView payload) {
  ByteWriter out;
  out.sized(payload);
  return out.take();
}

Result<Capture> decode_capture(BytesView bytes) {
  if (!looks_like_capture(bytes)) return Error{Errc::corrupt, "it is not a capture"};
  ByteReader in(bytes);
  in.raw(8);
  if (const int version = in.u8(); version != capture_magic[8])
    return Error{Errc::mismatch,
                 str("it is a capture of version ", version, "; this program reads version 1")};
  Capture capture;
  auto form = RunForm::decode(in);
  if (!form) return form.error();
  capture.form = std::move(form).value();
  while (in.remaining() > 0) {
    const std::size_t at = in.position();
    const BytesView payload = in.sized(limits::payload_bytes_max);
    if (in.failed()) {
      // Cut off is forgiven at the very end only: a length that no payload has is damage.
      ByteReader again(bytes.subspan(at));
      if (again.varint() > limits::payload_bytes_max && !again.failed())
        return Error{Errc::corrupt, str("damaged at byte ", at, ": a record claims more than ",
                                        limits::payload_bytes_max, " bytes")};
      capture.cut_off = true;
      break;
    }
    capture.payloads.emplace_back(payload.begin(), payload.end());
  }
  return capture;
}

}  // namespace rumor
