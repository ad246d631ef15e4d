// DeviceCodec: payloads of compress/FORMAT.md, chapter 4, whose entries never leave the GPU.
//
// The device does what there is one of for each entry: fields, thirds and quotients of the bodies. The host does what
// there is one of for each tensor or segment: head, table, checksums (it reads those bytes anyway, to hash or to send
// them) and all that decides whether a payload is accepted. So what crosses the bus is the payload, some numbers a
// tensor and segment, and nothing for each entry.
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
    compress::Segments segments;                  // none without entries
    std::optional<compress::SegmentTable> table;  // of more than one segment
    std::uint64_t head_bits = 0;                  // behind byte 0; then the body of a single segment begins
    std::size_t first_segment = 0;                // among those that are decoded with it

    // Segment s begins and must end at these bits of the payload.
    std::uint64_t begin(std::size_t s) const;
    std::uint64_t end(std::size_t s) const;
    bool checksums_right() const;
    // sound: of all segments that were decoded. Errors: Errc::corrupt, of the first that is damaged.
    Result<void> check(const std::vector<std::uint32_t>& sound) const;
  };

 public:
  // Copies the layout; refers to `gpu`.
  DeviceCodec(const Gpu& gpu, ParamLayout layout) : gpu_(&gpu), layout_(std::move(layout)) {}

  // The canonical payload. Requires: `update` as compress::encode() wants it. Errors: Errc::io, Errc::limit.
  Result<Bytes> encode(const DeviceUpdate& update);

  // Reads a payload into `out`, whose memory is reused. On error `out` is empty. Errors: Errc::corrupt as
  // compress::decode(); Errc::io, Errc::limit.
  Result<void> decode(BytesView payload, DeviceUpdate& out);

  // Reads several at once: a segment keeps one multiprocessor busy and an update has a few, so that together they take
  // little longer than one, and the host waits once. The entries lie in `out` one update's after the other's, and
  // nothing else of it is set; how many each has is returned. Errors: as decode(), of the first that is damaged; then
  // `out` is empty.
  Result<std::vector<std::uint32_t>> decode_all(std::span<const BytesView> payloads, DeviceUpdate& out);

  // The same in two: begin() returns before the device has decoded, finish() waits for it. Of several that are begun
  // each has a Begun of its own. Until it is finished the payloads stay where they are, and nobody touches `out`.
  // Errors: those of decode_all(), of either.
  class Begun {
   public:
    std::size_t memory_bytes() const { return sound_.bytes(); }

   private:
    friend class DeviceCodec;
    std::vector<Opened> opened_;
    DeviceArray<std::uint32_t> sound_;  // of each segment, once it is decoded
    std::size_t segments_ = 0;
    bool checksums_right_ = true;
  };
  Result<void> begin(std::span<const BytesView> payloads, DeviceUpdate& out, Begun& begun);
  Result<void> finish(Begun& begun, DeviceUpdate& out) const;

  // On the device.
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
