// RunPart: one of the things in which all peers of a run are alike: a key of the run file, a tensor, the initial
// weights.
//
// Thread: plain values and functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/limits.h"
#include "runtime/base/text.h"

namespace rumor {

struct RunPart {
  std::string text;        // for people: "compress.grid_bits = 22"
  std::uint32_t hash = 0;  // first 32 bits of a SHA-256 over the part's name and value
};

// The first of `ours` that is in another place there, among the parts that both have; empty if there is none.
inline std::string first_moved_part(std::span<const RunPart> ours, std::span<const std::uint32_t> theirs) {
  std::set<std::uint32_t> here;
  for (const RunPart& part : ours) here.insert(part.hash);
  std::vector<std::uint32_t> both;
  std::copy_if(theirs.begin(), theirs.end(), std::back_inserter(both), [&](auto hash) { return here.contains(hash); });
  const std::set<std::uint32_t> known(both.begin(), both.end());
  std::size_t place = 0;
  for (const RunPart& part : ours)
    if (known.contains(part.hash) && (place == both.size() || both[place++] != part.hash)) return part.text;
  return {};
}

// For the person who must make two runs alike: names those of `ours` whose hashes are not in `theirs`, such as "it does
// not have what is here: compress.grid_bits = 22", and where the order of the rest differs. Only the first
// limits::run_parts_max of ours count, as many as another peer tells. Empty where nothing can be said, as for a peer
// that tells none.
inline std::string unlike_parts(std::span<const RunPart> ours, std::span<const std::uint32_t> theirs) {
  constexpr std::size_t named_max = 3;
  if (theirs.empty()) return {};
  const std::set<std::uint32_t> known(theirs.begin(), theirs.end());
  const auto told = ours.first(std::min(ours.size(), limits::run_parts_max));
  std::string named;
  std::size_t unlike = 0;
  for (const RunPart& part : told) {
    if (known.contains(part.hash)) continue;
    if (++unlike <= named_max) named += str(named.empty() ? "" : ", ", part.text);
  }
  if (unlike > named_max) named += str(" and ", unlike - named_max, " more");
  const std::string moved = first_moved_part(told, theirs);
  const std::string order = moved.empty() ? "" : "it has another order, in which this comes elsewhere: " + moved;
  if (unlike != 0) return str("it does not have what is here: ", named, order.empty() ? "" : "; ", order);
  if (!order.empty()) return order;
  if (theirs.size() > ours.size()) return str("it has ", theirs.size() - ours.size(), " tensors or keys more");
  return {};
}

}  // namespace rumor
