// The frames between the stages of a pipeline (gossip/PIPELINE.md, 4). Included by wire.h, which has their
// conversions.
//
// Thread: plain values. Memory: Activations and Gradients hold views into the frame; all else is owned.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/base/types.h"

namespace rumor::gossip {

// All peers of a pipeline have the same.
using PipelineId = Id<struct PipelineTag, 16>;

struct MicroBatchName {
  StreamId source;  // of the peer that drew the rows
  std::uint64_t number = 0;
  auto operator<=>(const MicroBatchName&) const = default;
};

struct Stage {
  PipelineId pipeline;
  std::uint32_t stage = 1, stages = 1;  // 1 <= stage <= stages
  std::uint32_t numbers = 0;            // how border numbers are coded: means nothing to the protocol
  bool operator==(const Stage&) const = default;
  std::optional<std::string_view> invalid() const;
  // Records, tokens and revocations are signed for it, in the place of a run (PIPELINE.md 9).
  RunId membership() const { return RunId::from(pipeline.view()); }
};

// The sender takes the transfers up to this number.
struct Credit {
  std::uint64_t limit = 0;
  std::optional<std::string_view> invalid() const;
};

struct ActivationsBegin {
  MicroBatchName name;
  std::uint32_t rows = 0;
  std::uint64_t label_bytes = 0, bytes = 0;  // of all pieces together: labels first; label_bytes <= bytes
};

// A piece of a transfer.
struct Activations {
  std::uint64_t transfer = 0;
  std::optional<ActivationsBegin> begin;  // of the first piece
  BytesView bytes;
  bool more = false;
  std::optional<std::string_view> invalid() const;
};

struct GradientsBegin {
  float loss = 0;  // mean over the rows
  std::uint64_t bytes = 0;
};

// A piece of the answer to a transfer.
struct Gradients {
  std::uint64_t transfer = 0;
  std::optional<GradientsBegin> begin;  // of the first piece
  BytesView bytes;
  bool more = false;
  std::optional<std::string_view> invalid() const;
};

struct Outcome {
  enum class Kind : std::uint32_t { counted = 1, dropped = 2, refused = 3 };
  std::uint64_t transfer = 0;
  Kind kind = Kind::dropped;
  std::optional<std::string_view> invalid() const;
};

// The sender sends no more micro-batches up.
struct Over {
  std::optional<std::string_view> invalid() const { return std::nullopt; }
};

}  // namespace rumor::gossip
