// ADAPT and LINK: entropy coding of a segment by a model of rows, columns and signs that learns while it codes
// (compress/ADAPT.md). Entries of real updates gather in rows and columns and share signs
// along a row; this takes 5 to 45 % fewer bits than coding them as independent.
//
// Thread: plain functions; a LinkHistory has one owner. Every decision is in integers or in single IEEE 754
// operations that are corrected to integers, so that all machines and compilers write and read the same bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compress/payload/segment.h"
#include "runtime/base/bytes.h"
#include "runtime/base/param_layout.h"

namespace rumor::compress {

// The memory that one end of an ordered connection keeps of the updates that crossed it in one direction. Both
// ends have equal memories, because both see the same updates in the same order.
class LinkHistory {
 public:
  explicit LinkHistory(const ParamLayout& layout);
  ~LinkHistory();
  LinkHistory(LinkHistory&&) noexcept;
  LinkHistory& operator=(LinkHistory&&) noexcept;

  // After an update has been coded or decoded, whatever the modes of its segments were.
  // index: its positions in the flat vector, ascending, all inside the layout. negative: 0 or 1 for each.
  void remember(std::span<const std::uint32_t> index, std::span<const std::uint8_t> negative);

  struct Impl;

 private:
  friend class AdaptModel;
  std::unique_ptr<Impl> impl_;
};

// Appends the body of a segment to `out`. positions: in-tensor positions of all parts, one part after another,
// ascending inside each; negative: 0 or 1 for each. history: null for ADAPT, else LINK.
// Requires: parts as segment.h says, positions inside them.
void adapt_encode(std::span<const Part> parts, std::span<const std::uint32_t> positions,
                  std::span<const std::uint8_t> negative, const LinkHistory* history, Bytes& out);

// Reads `body` into positions and negative, which have room for the sum of the counts. Returns false if adapt_encode()
// would not write this body for exactly these entries: too long, too short, out of range, another choice of
// parameters. The content of the two arrays is then unspecified. Never reads or writes outside; work is linear in
// entries plus columns and bytes.
bool adapt_decode(std::span<const Part> parts, BytesView body, const LinkHistory* history,
                  std::uint32_t* positions, std::uint8_t* negative);

}  // namespace rumor::compress
