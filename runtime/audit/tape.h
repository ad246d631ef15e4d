// StepRecord, TapeWriter, TapeReader: what a step needs to be made again, as bytes. runtime/AUDIT.md specifies them.
//
// Thread: one owner each. Memory: a have-set, and what was recorded since the last take().
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compress/select/compressor.h"
#include "runtime/audit/view_trail.h"
#include "runtime/base/sha256.h"
#include "runtime/exchange/in_flight_view.h"

namespace rumor::audit {

// The first record of a stream, and of each of its segments: what all of its steps have alike.
struct TapeStart {
  bool repeatable = false;  // class 0; of class 1 nothing else counts, and no record follows
  std::uint32_t shard = 0, shards = 1;
  compress::Emit emit = compress::Emit::threshold;
  compress::Scope scope = compress::Scope::global;
  bool local_steps = false;           // the recipe of runtime/training/local_steps.h, else that of one mini-batch
  Hash256 data = {};                  // models::training_data_hash()
  std::optional<UpdateKey> continues = {};  // the trainer's state is that behind this update; absent: a new trainer
  bool operator==(const TapeStart&) const = default;
};

// The first record of a segment: the trainer's state behind the update before.
struct SegmentStart {
  Hash256 root = {};          // gossip::keep_state() of Trainer::carried_state()
  std::uint64_t bytes = 0;    // of that state
  std::uint64_t pieces = 0;   // that the trainer has drawn (BatchRules::piece)
  bool operator==(const SegmentStart&) const = default;
};

struct StepRecord {
  std::optional<TapeStart> start = {};  // of the first record of a stream and of a segment
  std::optional<SegmentStart> segment = {};
  bool held = false;                    // the step made no update
  bool flush = false;
  bool drop_residual = false;           // StepPlan::drop_residual
  std::uint64_t period = 0;
  std::uint64_t peers = 1;    // live ones, this one included
  std::uint64_t batches = 1;  // mini-batches
  double brake = 1;           // factor of the learning rate, in (0, 1]
  double density = 0;
  std::vector<InFlightView::Waiting> in_flight = {};  // ascending periods

  bool operator==(const StepRecord&) const = default;
};

class TapeWriter {
 public:
  // The view is the set of updates that the step's weights hold. Requires: a first record and one of a segment have a
  // start.
  void add(const StepRecord& record, const gossip::HaveSet& view);
  // The tape since the last call.
  Bytes take() { return std::exchange(tape_, {}).take(); }
  std::size_t bytes() const { return tape_.size(); }

 private:
  bool begun_ = false;
  ViewTrail trail_;
  ByteWriter tape_;
};

// Reads the tapes of a stream's updates, in their order.
class TapeReader {
 public:
  // segment: RunConfig::segment_updates(). first: the number of the update whose tape is read first; where it is not 1,
  // that of a segment's first update.
  explicit TapeReader(std::uint64_t segment = 0, std::uint64_t first = 1)
      : segment_(segment), next_(first), begun_(first > 1) {}

  struct Read {
    StepRecord record;
    gossip::HaveSet view;
  };
  // The records of one tape. Errors: Errc::corrupt, Errc::limit: it is not what a TapeWriter has written; the stream
  // cannot be read any further then.
  Result<std::vector<Read>> read(BytesView tape);

 private:
  // `segment`: the record begins one.
  Result<StepRecord> read_record(bool segment, ByteReader& in);
  Result<void> read_starts(std::uint8_t flags, StepRecord& record, ByteReader& in);

  std::uint64_t segment_, next_;
  bool begun_;
  std::optional<TapeStart> start_;
  ViewTrail trail_;
};

}  // namespace rumor::audit
