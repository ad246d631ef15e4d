#include "compress/payload/recorded.h"

#include "runtime/base/check.h"
#include "runtime/base/limits.h"

namespace rumor::compress {

namespace {
constexpr std::uint8_t recorded_version = 7;
}

Bytes with_record(BytesView record, BytesView update) {
  RUMOR_CHECK(record.size() <= limits::record_bytes_max);
  ByteWriter out;
  out.u8(recorded_version);
  out.sized(record);
  out.raw(update);
  return out.take();
}

std::optional<RecordedPayload> split_record(BytesView payload) {
  ByteReader in(payload);
  if (in.u8() != recorded_version) return std::nullopt;
  RecordedPayload parts;
  parts.record = in.sized(limits::record_bytes_max);
  parts.update = in.raw(in.remaining());
  if (in.failed()) return std::nullopt;
  return parts;
}

BytesView update_part(BytesView payload) {
  const auto parts = split_record(payload);
  return parts ? parts->update : payload;
}

}  // namespace rumor::compress
