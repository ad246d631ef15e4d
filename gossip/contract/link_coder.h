// LinkCoder: the form that payloads have on one link (PROTOCOL.md 6.2). A payload is always stored, hashed and compared
// in canonical form; a slow link carries it in fewer bytes.
//
// Made by the UpdateStore for each link and owned by it; the protocol decides which coding a payload gets.
//
// Thread: one owner, as Protocol. Pure computation.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/base/bytes.h"
#include "runtime/base/result.h"

namespace rumor::gossip {

// As in DATA: the numbers travel.
enum class Coding : std::uint8_t {
  canonical = 0,
  adapt = 1,   // shorter, readable without anything before it
  link = 2,  // shorter still: both ends remember the payloads that crossed this link in this coding
};
constexpr std::uint8_t coding_max = 2;
constexpr std::uint32_t codings_all = 0b111;

// Which codings a link may use: `automatic` is canonical, and link where the link has shown to be slow.
enum class CodingRule : std::uint8_t { automatic, canonical, adapt, link };

class LinkCoder {
 public:
  virtual ~LinkCoder() = default;

  // Both directions are independent. Payloads in Coding::link must be decoded by the other end in the order
  // in which they were encoded, each exactly once. Requires: not Coding::canonical.
  virtual Bytes encode(Coding coding, BytesView payload) = 0;
  // Returns the canonical payload. Errors: Errc::corrupt; the history is then of no use any more.
  virtual Result<Bytes> decode(Coding coding, BytesView bytes) = 0;
};

}  // namespace rumor::gossip
