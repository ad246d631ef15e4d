// DeviceCodec: codes payloads of compress/FORMAT.md, chapter 4, whose entries never leave the GPU.
//
// The device does the work per entry: fields, thirds and quotients of the bodies. The host does the work per tensor or
// segment: head, table, checksums (it reads those bytes anyway, to hash or to send them) and every check that decides
// whether a payload is accepted. The bus therefore carries the payload and some numbers per tensor and segment, and
// nothing per entry.
//
// encode() and decode() give the bytes, the entries and the errors of compress/payload/update.h.
//
// Thread: one caller at a time. Memory, device: the payloads, at their longest, and 32 bytes a part.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compress/payload/head.h"
#include "compress/payload/segment.h"
#include "compress/payload/segment_table.h"
#include "gpu/device/device.h"
#include "gpu/device/device_update.h"

namespace rumor::gpu {

class DeviceCodec {
  // A payload whose head and table have been read.
  struct Opened {
    BytesView payload;
    compress::Head head;
    compress::Segments segments;                  // empty without entries
    std::optional<compress::SegmentTable> table;  // if there is more than one segment
    std::uint64_t head_bits = 0;                  // after byte 0; the body of a single segment begins there
    std::size_t first_segment = 0;                // among the segments that are decoded together

    // Bits of the payload at which segment s begins and must end.
    std::uint64_t begin(std::size_t s) const;
    std::uint64_t end(std::size_t s) const;
    bool checksums_right() const;
    // sound: of all decoded segments. Errors: Errc::corrupt, for the first damaged segment.
    Result<void> check(const std::vector<std::uint32_t>& sound) const;
  };

 public:
  // Copies the layout; refers to `gpu`.
  DeviceCodec(const Gpu& gpu, ParamLayout layout) : gpu_(&gpu), layout_(std::move(layout)) {}

  // Returns the canonical payload. Requires: `update` meets the requirements of compress::encode(). Errors: Errc::io,
  // Errc::limit.
  Result<Bytes> encode(const DeviceUpdate& update);

  // Reads a payload into `out`, whose memory is reused. On error `out` is empty. Errors: Errc::corrupt as
  // compress::decode(); Errc::io, Errc::limit.
  Result<void> decode(BytesView payload, DeviceUpdate& out);

  // Reads several payloads at once. A segment keeps one multiprocessor busy and an update has few segments, so several
  // updates take little longer than one, and the host waits once. The entries of the updates follow one another in
  // `out`; no other member of it is set. Returns the number of entries of each update. Errors: as decode(), for the
  // first damaged payload; `out` is then empty.
  Result<std::vector<std::uint32_t>> decode_all(std::span<const BytesView> payloads, DeviceUpdate& out);

  // decode_all() in two steps: begin() returns before the device has decoded, finish() waits for it. Each decode in
  // flight needs its own Begun. Until finish() the payloads must stay in place, and no caller may touch `out`. Errors:
  // those of decode_all(), from either.
  class Begun {
   public:
    std::size_t memory_bytes() const { return sound_.bytes(); }

   private:
    friend class DeviceCodec;
    std::vector<Opened> opened_;
    DeviceArray<std::uint32_t> sound_;  // of each segment, once decoded
    std::size_t segments_ = 0;
    bool checksums_right_ = true;
  };
  Result<void> begin(std::span<const BytesView> payloads, DeviceUpdate& out, Begun& begun);
  Result<void> finish(Begun& begun, DeviceUpdate& out) const;

  // Bytes of device memory.
  std::size_t memory_bytes() const {
    return device_bytes(parts_, segments_, bytes_, ends_, words_, gathered_) + begun_.memory_bytes();
  }

 private:
  Result<void> send(const std::vector<CodePart>& parts, const std::vector<CodeSegment>& places);
  Result<void> set_begins(const DeviceUpdate& update, compress::Segments& segments);
  Result<Opened> open(BytesView payload) const;
  Result<void> begin_bodies(Begun& begun, DeviceUpdate& out);
  Result<void> write_payloads(std::span<const Opened> opened);

  const Gpu* gpu_;
  ParamLayout layout_;
  DeviceArray<CodePart> parts_;
  DeviceArray<CodeSegment> segments_;
  DeviceArray<std::uint8_t> bytes_;
  DeviceArray<std::uint64_t> ends_;
  DeviceArray<std::uint32_t> words_, gathered_;
  Begun begun_;  // by decode() and decode_all()
};

}  // namespace rumor::gpu
