// AdaptIo: the directions in which AdaptWalk codes a segment. An encoder is told what happens and writes it; a decoder
// reads it and says what happened. Both are adapt.cc's.
//
// Every operation of the first group takes its last arguments when encoding, and sets them when decoding. False ends
// the walk: the message is damaged.
//
// Thread: one owner. No virtual functions: the walk's inner loops are compiled once for each direction.
#pragma once

#include <concepts>
#include <cstdint>

#include "compress/link/adapt_cells.h"
#include "compress/link/adapt_coder.h"
#include "compress/link/adapt_lanes.h"
#include "compress/link/adapt_learning.h"
#include "compress/link/adapt_member.h"
#include "compress/link/adapt_shape.h"

namespace rumor::compress {

// Stands for any function from a cell to the context of its sign.
struct AnyContext {
  std::uint32_t operator()(std::uint32_t cell) const;
};

template <class Io>
concept AdaptIo = requires(Io io, const Shape& shape, Lane lane, const NextMember<AlikeCells>& next,
                           const Signs& signs, const AnyContext& context_of, Counts& counts, unsigned bits,
                           std::uint32_t i, std::uint32_t& cell, std::uint32_t& minus, typename Io::Local local) {
  // One of 2^bits values, all alike.
  { io.number(lane, cell, bits) } -> std::same_as<bool>;
  // The next member of a set; the same with the sign of an entry; two of these, one of each lane; a sign alone.
  { io.member(lane, next, cell) } -> std::same_as<bool>;
  { io.entry(lane, next, signs, context_of, cell, minus) } -> std::same_as<bool>;
  { io.entries(next, context_of, cell, minus, next, context_of, cell, minus, signs) } -> std::same_as<bool>;
  { io.sign(lane, signs, i, minus) } -> std::same_as<bool>;
  // A symbol of a small alphabet, which `counts` learns.
  { io.symbol(lane, counts, i, cell) } -> std::same_as<bool>;
  // The last entry of the segment.
  { io.last_entry(next, cell, minus) } -> std::same_as<bool>;
  { io.last_sign(minus) } -> std::same_as<bool>;
  // From here on two coder states, or one again.
  { io.part() } -> std::same_as<bool>;
  { io.join() } -> std::same_as<bool>;

  // Only an encoder knows these; a decoder gives zeros (one for hits). Entry i is counted within the part, row j among
  // the rows that have entries.
  io.begin(shape);
  { io.rows_hit() } -> std::same_as<std::uint32_t>;
  { io.row(i) } -> std::same_as<std::uint32_t>;
  { io.hits(i) } -> std::same_as<std::uint32_t>;
  { io.empty_from(i) } -> std::same_as<std::uint32_t>;  // the first row from i on that has no entries
  { io.column(i) } -> std::same_as<std::uint32_t>;
  { io.minus(i) } -> std::same_as<std::uint32_t>;
  io.put(i, i, i);  // entry, position, sign
  io.end(shape);

  // Loops work on a copy, which can stay in registers, and hand it back.
  io.take_back(local);
};

}  // namespace rumor::compress
