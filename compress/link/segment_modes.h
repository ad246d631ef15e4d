// Bodies of segments in any mode: the parts of a link-form message (compress/FORMAT.md, chapter 6).
//
// Thread: plain functions; segments of one update may be coded on several threads.
#pragma once

#include <cstdint>
#include <span>

#include "compress/link/adapt.h"
#include "compress/link/link_form.h"
#include "compress/payload/segment.h"
#include "compress/payload/segment_table.h"

namespace rumor::compress {

// Entries of one segment: positions in the flat vector.
struct SegmentEntries {
  std::span<const Part> parts;
  std::span<const std::uint32_t> index;
  std::span<const std::uint8_t> negative;
};

// The shortest body that `choice` allows, and its mode; RICE where another is not shorter.
// Requires: entries as `parts` says; checked.
struct SegmentBody {
  SegmentMode mode = SegmentMode::rice;
  Bytes bytes;
};
SegmentBody shortest_body(const ParamLayout& layout, const SegmentEntries& segment, LinkForm choice,
                          const LinkHistory* history, const RiceKernels& kernels);

// The body in a given mode. Requires: a history for LINK.
Bytes body_in(const ParamLayout& layout, const SegmentEntries& segment, SegmentMode mode,
              const LinkHistory* history, const RiceKernels& kernels);

// Reads a body at a known place in `message`. Returns false if it holds no such entries; the content of index and
// negative is then unspecified. Requires: room for the sum of the counts.
bool decode_body(const ParamLayout& layout, std::span<const Part> parts, BytesView message,
                 const SegmentPlace& place, std::uint64_t first_byte, const LinkHistory* history,
                 std::uint32_t* index, std::uint8_t* negative, const RiceKernels& kernels);

}  // namespace rumor::compress
